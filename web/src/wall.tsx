// SPDX-License-Identifier: Apache-2.0
// Where the wall clock of a phase went: a bar for each lane, and the same as a table.
import { type Figure, type Part, type Wall as WallData, type WallLane, valueOf } from "./data";
import { Absent, Name, Num, Section, Table, useWidth } from "./parts";
import { fixed, grouped, percent, visible } from "./text";

interface Piece { word: string; fill: string; pattern?: string; of: (lane: WallLane) => Figure | undefined }

/** Of a lane whose busy time is not known its parts are not known either. */
const ofBusy = (lane: WallLane, ns: number): Figure => (typeof lane.busy_ns === "number" ? ns : lane.busy_ns);

const hostWork = "idle, host at work", unknown = "idle, cause unknown";

// In the order of the bar. A pattern each, so that no colour has to be told from another.
const pieces: Piece[] = [
  { word: "busy, in bricks", fill: "var(--c-attention)", of: (lane) => ofBusy(lane, lane.bricks_ns) },
  { word: "busy, unattributed", fill: "var(--c-move)", pattern: "M0 3H6", of: (lane) => lane.unattributed_ns },
  { word: "idle, launch exposed", fill: "var(--bg)", pattern: "M0 6L6 0", of: (lane) => (lane.device ? lane.idle.exposed_launch_ns : undefined) },
  { word: hostWork, fill: "var(--bg)", pattern: "M0 0L6 6", of: (lane) => (lane.device ? lane.idle.host_work_ns : undefined) },
  { word: "idle, waiting for a device", fill: "var(--bg)", pattern: "M3 0V6", of: (lane) => (lane.device ? undefined : lane.idle.for_device_ns) },
  { word: unknown, fill: "var(--alike)", of: (lane) => lane.idle.unknown_ns },
  { word: "not known to be busy or idle", fill: "var(--bg)", pattern: "M2 2H4V4H2z", of: rest },
];

interface Line { word: string; index: number; inner?: boolean; of: (lane: WallLane) => Figure | undefined }

const mostScopes = 8;

/** What the host did while lanes were idle, by the name of the scope; the longest. */
function scopesOf(lanes: WallLane[], device: boolean): Line[] {
  const names = new Map<string, number>();
  for (const lane of lanes) if (lane.device === device) for (const { name, self_ns } of lane.idle.scopes) names.set(name, Math.max(names.get(name) ?? 0, self_ns));
  const ordered = [...names].sort(([, a], [, b]) => b - a);
  const of = (name: string) => (lane: WallLane) => lane.device === device && typeof lane.idle.total_ns === "number" ? lane.idle.scopes.filter((scope) => scope.name === name).reduce((sum, scope) => sum + scope.self_ns, 0) : undefined;
  const lines: Line[] = ordered.slice(0, mostScopes).map(([name]) => ({ word: `in ${visible(name, 40)}`, index: -1, inner: true, of: of(name) }));
  const more = ordered.slice(mostScopes);
  if (more.length > 0) lines.push({ word: `in ${grouped(more.length)} others; the data has them all`, index: -1, inner: true, of: (lane) => more.reduce<number | undefined>((sum, [name]) => { const one = valueOf(of(name)(lane)); return one === undefined ? sum : (sum ?? 0) + one; }, undefined) });
  return lines;
}

/** The parts of a kind of idle time that have names. */
function causes(lanes: WallLane[], word: string): Line[] {
  const part = (name: string, figure: (lane: WallLane) => Figure): Line => ({ word: name, index: -1, inner: true, of: (lane) => (lane.device ? figure(lane) : undefined) });
  if (word === hostWork) return scopesOf(lanes, true);
  if (word !== unknown) return [];
  return [part("launched, not begun", (lane) => lane.idle.queued_ns), part("host in no named scope", (lane) => lane.idle.unnamed_ns), part("host off the CPU", (lane) => lane.idle.off_cpu_ns), ...scopesOf(lanes, false)];
}

/** What no other piece holds, where one of them is not known. */
function rest(lane: WallLane): number | undefined {
  const known = pieces.slice(0, -1).map((piece) => piece.of(lane));
  const sum = known.reduce<number>((all, one) => all + (valueOf(one) ?? 0), 0);
  return known.some((one) => typeof one === "object") && lane.period_ns - sum > 1e-3 * lane.period_ns ? lane.period_ns - sum : undefined;
}

function Fill({ piece, index }: { piece: Piece; index: number }) {
  return piece.pattern ? (
    <pattern id={`wall-${index}`} width="6" height="6" patternUnits="userSpaceOnUse">
      <rect width="6" height="6" fill={piece.fill} /><path d={piece.pattern} stroke="var(--ink)" stroke-width="1" />
    </pattern>
  ) : null;
}
const fillOf = (piece: Piece, index: number) => (piece.pattern ? `url(#wall-${index})` : piece.fill);

function Bar({ lane, width }: { lane: WallLane; width: number }) {
  let at = 0;
  const parts = pieces.map((piece, index) => {
    const ns = valueOf(piece.of(lane)) ?? 0;
    const from = at;
    at += lane.period_ns > 0 ? (width * ns) / lane.period_ns : 0;
    return { piece, index, from, to: at, share: ns / lane.period_ns };
  });
  const words = parts.filter((part) => part.share > 0).map((part) => `${part.piece.word} ${percent(part.share)}`).join(", ");
  return (
    <svg width={width} height="26" role="img" aria-label={words}>
      <title>{words}</title>
      <rect x="0.5" y="0.5" width={Math.max(0, width - 1)} height="25" fill="var(--bg)" stroke="var(--firm)" />
      {parts.map((part) => part.to > part.from && (
        <rect key={part.index} x={part.from} y="0.5" width={part.to - part.from} height="25" fill={fillOf(part.piece, part.index)} stroke="var(--firm)" stroke-width="0.5" />
      ))}
      {parts.map((part) => part.index === 0 && part.to - part.from > 70 && (
        <text key={part.index} x={part.from + 8} y="17" style={{ fill: "var(--on)" }}>{percent(part.share)}</text>
      ))}
    </svg>
  );
}

export function Wall({ wall, phase }: { wall: Part<WallData>; phase: string }) {
  const [box, width] = useWidth();
  const account = "found" in wall ? wall.found.phases.find((one) => one.phase === phase) : undefined;
  const lanes = account?.lanes ?? [];
  const lines: Line[] = [
    ...pieces.flatMap((piece, index) => [{ word: piece.word, index, of: piece.of }, ...causes(lanes, piece.word)]).filter((line) => lanes.some((lane) => line.of(lane) !== undefined)),
    { word: "period", index: -1, of: (lane) => lane.period_ns },
    { word: "overlap (bricks at the same time)", index: -1, of: (lane) => ofBusy(lane, lane.overlap_ns) },
  ];
  return (
    <Section id="wall" title="Where the wall clock went" lead="Busy and idle add up to the period of the steps; bricks and unattributed add up to busy.">
      <div ref={box}>
        {!account ? <Absent why={"absent" in wall ? wall.absent : "no counted step of this phase"} /> : (
          <>
            <div class="chart">
              <svg width="0" height="0" aria-hidden="true"><defs>{pieces.map((piece, index) => <Fill key={index} piece={piece} index={index} />)}</defs></svg>
              {lanes.map((lane) => <div key={lane.name}><h3><Name of={lane.name} /></h3>{width > 0 && <Bar lane={lane} width={width} />}</div>)}
            </div>
            <div class="columns">
              <div>
                <h3>us per step, and share of the period</h3>
                <Table label="The wall clock by lane" rows={lines} columns={[
                  { head: "time", left: true, cell: (line) => <span class={line.inner ? "inner" : ""}>{line.index >= 0 && <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" fill={fillOf(pieces[line.index]!, line.index)} /></svg>}{line.word}</span> },
                  ...lanes.flatMap((lane) => [
                    { head: visible(lane.name, 60), cell: (line: Line) => line.of(lane) === undefined ? <span class="faint">-</span> : lane.steps > 0 ? <Num of={per(line.of(lane), lane.steps)} unit={1e3} decimals={1} /> : <span class="na">n/a</span> },
                    { head: "%", cell: (line: Line) => { const ns = valueOf(line.of(lane)); return ns === undefined ? "" : lane.period_ns > 0 ? fixed((100 * ns) / lane.period_ns, 1) : ""; } },
                  ]),
                ]} />
              </div>
              {account.gains.length > 0 && <div>
                <h3>The most there is to gain</h3>
                <Table label="Gains at most" rows={account.gains.slice(0, 8)} columns={[
                  { head: "if there were", left: true, cell: (gain) => <Name of={gain.what} /> },
                  { head: "us per step", cell: (gain) => <Num of={gain.at_most_ns} unit={1e3} decimals={1} /> },
                  { head: "%", cell: (gain) => fixed(100 * gain.share, 1) },
                  { head: "tok/s then", cell: (gain) => <Num of={gain.tokens_per_second} decimals={1} /> },
                ]} />
              </div>}
            </div>
          </>
        )}
      </div>
    </Section>
  );
}

const per = (figure: Figure | undefined, steps: number): Figure | undefined => (typeof figure === "number" ? figure / steps : figure);
