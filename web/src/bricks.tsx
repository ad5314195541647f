// SPDX-License-Identifier: Apache-2.0
// What each brick took: a table that sorts, with how its times are spread.
import { type Histogram, type Part, type Report, type Row, valueOf } from "./data";
import { type Column, Name, Num, Section, Table } from "./parts";
import { decimalsFor, fixed, time } from "./text";

export function Spread({ of }: { of: Histogram["rows"][number] | undefined }) {
  if (!of || of.bins.length === 0) return <span class="na">n/a</span>;
  const most = Math.max(...of.bins, 1);
  const width = 4, height = 20;
  const words = of.begin_ns === of.end_ns ? `all ${time(of.begin_ns)}` : `${time(of.begin_ns)} to ${time(of.end_ns)}, ${of.above} of ${of.count} longer`;
  return (
    <svg width={24 * width} height={height} role="img" aria-label={words}>
      <title>{words}</title>
      <line x1="0" x2={24 * width} y1={height - 0.5} y2={height - 0.5} stroke="var(--line)" />
      {of.bins.map((count, i) => count > 0 && (
        <rect key={i} class="spread" x={i * width} width={of.bins.length === 1 ? width : width - 0.5} y={height - Math.max(1, ((height - 1) * count) / most)} height={Math.max(1, ((height - 1) * count) / most)} />
      ))}
    </svg>
  );
}

function Share({ of }: { of: number | undefined }) {
  return of === undefined ? null : (
    <svg width="60" height="10" aria-hidden="true"><rect width="60" height="10" fill="var(--alike)" /><rect class="bar" width={Math.min(60, 60 * of)} height="10" /></svg>
  );
}

const marks: Record<string, string> = { timed_steps: " *", replays: " @" };
const markOf = (row: Row) => (row.parent ? " +" : row.lap ? " ~" : "") + (marks[row.device?.basis ?? ""] ?? "");

export function Bricks({ report, phase, histogram }: { report: Report; phase: string; histogram: Part<Histogram> }) {
  const rows = report.bricks.filter((row) => row.phase === phase);
  const spreads = "found" in histogram ? histogram.found.rows : [];
  const spreadOf = (row: Row) => spreads.find((one) => one.phase === row.phase && one.name === row.name && one.source === row.source && one.lap === row.lap);
  const summary = report.phases.find((one) => one.phase === phase);
  const largest = (of: (row: Row) => number | undefined) => Math.max(0, ...rows.map((row) => of(row) ?? 0));
  const sumDecimals = decimalsFor(largest((row) => row.sum_per_step_ns / 1e6), 4);
  const column = (head: string, of: (row: Row) => Row["wall_share"], unit: number, decimals: number, hint?: string): Column<Row> => ({
    head, hint, key: (row) => valueOf(of(row)), cell: (row) => <Num of={of(row)} unit={unit} decimals={decimals} />,
  });
  const columns: Column<Row>[] = [
    { head: "brick", left: true, key: (row) => row.name, cell: (row) => <><Name of={row.name} />{markOf(row)}</> },
    { head: "% wall", hint: "of the period of a step", key: (row) => valueOf(row.wall_share), cell: (row) => <span class="share"><Num of={row.wall_share} unit={0.01} decimals={1} /><Share of={valueOf(row.wall_share)} /></span> },
    { head: "sum/step ms", key: (row) => row.sum_per_step_ns, cell: (row) => <Num of={row.sum_per_step_ns} unit={1e6} decimals={sumDecimals} /> },
    { head: "calls/step", key: (row) => row.calls_per_step, cell: (row) => <Num of={row.calls_per_step} decimals={Number.isInteger(row.calls_per_step) ? 0 : 2} /> },
    column("p50 us", (row) => row.time.p50_ns, 1e3, 1, "of one call"),
    column("p90 us", (row) => row.time.p90_ns, 1e3, 1, "of one call"),
    { head: "the shortest 99 %", left: true, cell: (row) => <Spread of={spreadOf(row)} />, hint: "how the calls are spread, in 24 bins" },
  ];
  if (rows.some((row) => valueOf(row.barrier_wait_share) !== undefined)) columns.push(column("% barrier", (row) => row.barrier_wait_share, 0.01, 1, "of its time: its thread waited for the others of its team"));
  if (rows.some((row) => valueOf(row.roofline.share) !== undefined)) columns.push(column("% roof", (row) => row.roofline.share, 0.01, 1, "of what bandwidth and arithmetic of the machine allow"));
  if (rows.some((row) => valueOf(row.gigabytes_per_second) !== undefined)) columns.push(column("GB/s", (row) => row.gigabytes_per_second, 1, decimalsFor(largest((row) => valueOf(row.gigabytes_per_second)))));
  if (rows.some((row) => valueOf(row.teraflops) !== undefined)) columns.push(column("TFLOP/s", (row) => row.teraflops, 1, 4));
  const known = new Map(report.description.filter(({ key }) => key.startsWith("known by ")).map(({ key, value }) => [key.slice("known by ".length), value]));
  if (known.size > 0) columns.push({ head: "known by", left: true, hint: "of the brick's time in the whole trace; weak: the kernel's name says little", key: (row) => known.get(row.name), cell: (row) => <span class="line"><Name of={known.get(row.name) ?? "-"} /></span> });
  columns.push({ head: "source", left: true, key: (row) => row.source, cell: (row) => <Name of={row.source} /> });
  const steps = summary?.steps ?? 0;
  const rest = (word: string, ns: number) => summary && (
    <tr class="sum" key={word}><th scope="row" class="left">{report.tracks.some((track) => track.device) ? `host: ${word}` : word}</th>
      <td><span class="share">{fixed((100 * ns) / summary.wall.period_ns, 1)}<Share of={ns / summary.wall.period_ns} /></span></td>
      <td><span class="num" data-v={ns / steps}>{fixed(ns / steps / 1e6, sumDecimals)}</span></td>{columns.slice(3).map((_, i) => <td key={i} />)}</tr>
  );
  return (
    <Section id="bricks" title="Bricks" lead={<>Of the {phase === "none" ? "time outside of steps" : `${phase} steps`}, warm-up apart. A heading sorts.</>}>
      {rows.length === 0 ? <p class="absent">No brick was timed in these steps.</p> : (
        <Table label={`Bricks of ${phase} steps`} columns={columns} rows={rows}
          foot={summary && steps > 0 && <>{rest("unattributed", summary.wall.unattributed_ns)}{rest("idle", summary.wall.idle_ns)}</>} />
      )}
      {([["+", "holds other bricks"], ["~", "made of laps: also holds the gap to the next border"],
        ["*", "a device queue that is timed in some steps only: calls and sums are per timed step"],
        ["@", "inside captured graphs: percentiles are of the replays that were sampled, sums are replays times the mean of each site"]] as const)
        .filter(([mark]) => rows.some((row) => markOf(row).includes(mark))).map(([mark, words]) => <p key={mark} class="faint"><b>{mark}</b> {words}</p>)}
    </Section>
  );
}
