// SPDX-License-Identifier: Apache-2.0
// Many ranks on one clock: who was late, and who waited in which layer.
import { type Figure, valueOf } from "./data";
import { beside, Heat, type HeatCell } from "./heat";
import { Absent, Name, Num, Section, Table, Twin } from "./parts";
import { fixed, grouped, percent } from "./text";

interface Range { least_ns: number; most_ns: number }
interface Rank {
  rank: number; file: string; trace?: string; host: string; clock: string; offset_ns: Figure; error_ns: Figure; drift_ppm: Figure; collectives: number; last: number;
  last_at_most: number; wait: Range; time_ns: number; message_wait: Range; messages: number; busy_share: Figure; hidden_share: Figure;
  layers: { layer: number; wait: Range }[];
}
interface Collective {
  brick: string; group: string; layer?: number; collectives: number; wait: Range; move: Range; least_share: number; most_share: number; verdict: string;
  arrivals: number; transfers: number; mixed: number; inconclusive: number; last_rank?: number; last: number;
}
interface Late { rank: number; margin_ns: number; last: number; collectives: number; expected: number; alone_ns: number; cost_share: number; host_bound: boolean; idle_share: Figure; others_idle_share: Figure }
export interface RanksFound {
  world: number; hosts: number; collectives: number; steps: number; numbered: boolean; run_ns: number; gain: Range; ranks: Rank[]; late: Late[]; groups: Collective[]; layers: Collective[];
  worst: { brick: string; group: string; layer?: number; step?: number; number: number; arrivals: number[]; wait: Range; move: Range; verdict: string }[];
  experts: { layer: number; rank: number; most: number; mean: number; imbalance: number }[];
  transfers: { from: number; to: number; directed: boolean; transfers: number; time: Range }[]; contradictions: string[]; notes: string[];
}

const mostRanks = 64; // in the map; more have no room in a window
const middle = (time: Range) => (time.least_ns + time.most_ns) / 2;

function Between({ of, unit, decimals = 1, suffix = "" }: { of: Range; unit: number; decimals?: number; suffix?: string }) {
  const low = fixed(of.least_ns / unit, decimals), high = fixed(of.most_ns / unit, decimals);
  return <span class="num" data-v={of.least_ns} data-most={of.most_ns}>{low === high ? low : `${low} to ${high}`}{suffix}</span>;
}

function medianOf(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length === 0 ? 0 : sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/// Where ranks are numbered by the names of their files, those say which rank is meant.
const fileOf = (row: Rank) => (row.trace ? `${row.file} of ${row.trace}` : row.file);

function Verdict({ found }: { found: RanksFound }) {
  const one = found.late[0], row = found.numbered && one && found.ranks.find((each) => each.rank === one.rank);
  if (found.collectives === 0) return <p class="verdict"><b>No collective was matched.</b> Who waited for whom is not known.</p>;
  if (!one) return <p class="verdict"><b>No rank is late.</b> None is last more often than chance lets it, and costs 1 % of the run.</p>;
  return (
    <p class="verdict"><b>Rank {one.rank}{row && <>, <Name of={fileOf(row)} />,</>} is late.</b> It is the last to arrive{one.margin_ns > 0 && `, by ${grouped(one.margin_ns / 1e3)} us or more,`} in {grouped(one.last)} of {grouped(one.collectives)} collectives{one.margin_ns > 0 && " where some rank may be"} ({fixed(one.expected, 0)} if all were alike),
      {" "}{fixed(one.alone_ns / 1e3, 1)} us after the one before it on average: {percent(one.cost_share)} of the run is lost to it at least.
      {one.host_bound && ` Its devices idle ${percent(valueOf(one.idle_share) ?? 0)} of the time, those of the others ${percent(valueOf(one.others_idle_share) ?? 0)}: it is bound by its host.`}</p>
  );
}

function Answer({ found }: { found: RanksFound }) {
  const errors = found.ranks.map((row) => valueOf(row.error_ns)), known = errors.filter((one): one is number => one !== undefined);
  const unit = found.steps > 0 ? 1e3 : 1e6;
  return (
    <section id="answer" aria-labelledby="answer-h">
      <h2 id="answer-h" class="quiet">The answer</h2>
      <Verdict found={found} />
      {found.contradictions.map((one) => <p class="warning" key={one}><b>Clocks contradict.</b> <Name of={one} most={600} /></p>)}
      <dl class="facts">
        <div><dt>ranks</dt><dd>{grouped(found.ranks.length)} <small>{found.world > 0 && `of ${grouped(found.world)}, `}on {grouped(found.hosts)} {found.hosts === 1 ? "host" : "hosts"}</small></dd></div>
        <div><dt>collectives</dt><dd data-fact="collectives"><span data-v={found.collectives}>{grouped(found.collectives)}</span> <small>matched</small></dd></div>
        <div><dt>if nobody waited</dt><dd data-fact="gain"><Between of={found.gain} unit={unit} suffix={found.steps > 0 ? " us" : " ms"} /> <small>{found.steps > 0 ? `a step less, of ${grouped(found.steps)} steps` : "less in the run"}</small></dd></div>
        <div><dt>error of the clocks</dt><dd>{known.length === 0 ? "n/a" : `${fixed(Math.max(...known) / 1e3, 1)} us`} <small>either way, at its worst{known.length < errors.length && `; ${errors.length - known.length} unknown`}</small></dd></div>
      </dl>
      {found.late.length > 1 && <ul class="why">{found.late.slice(1, 8).map((one) => <li key={one.rank}><b class="odd">late</b> rank {one.rank}: last in {grouped(one.last)} of {grouped(one.collectives)}, {percent(one.cost_share)} of the run</li>)}</ul>}
      {found.notes.map((note) => <p key={note}><b>note</b> <Name of={note} most={600} /></p>)}
    </section>
  );
}

function Map({ found }: { found: RanksFound }) {
  const shown = found.ranks.slice(0, mostRanks);
  const median = medianOf(found.ranks.flatMap((row) => row.layers.map((cell) => middle(cell.wait))));
  const numbers = [...new Set(shown.flatMap((row) => row.layers.map((cell) => cell.layer)))].sort((a, b) => a - b);
  const late = new Set(found.late.map((one) => one.rank));
  const cellsOf = (row: Rank) => {
    const cells = new globalThis.Map<number, HeatCell>();
    for (const { layer, wait } of row.layers) {
      const value = middle(wait);
      cells.set(layer, { value, median, words: `waits ${fixed(wait.least_ns / 1e3, 1)} to ${fixed(wait.most_ns / 1e3, 1)} us in a collective${beside(value, median)} of all` });
    }
    return cells;
  };
  return (
    <Section id="map" title="Waiting by rank and layer" lead={`How long a rank waits for the last one in a collective of each layer; ${fixed(median / 1e3, 1)} us in the median. A rank that waits less than the others is the one that they wait for.`}>
      {numbers.length < 2 ? <Absent why="no collective of two layers was recorded" /> : <>
        <Heat label="Heat map of waiting by rank and layer" legend="the median of all" step={0.25} rows={shown.map((row) => ({ name: `rank ${row.rank}${late.has(row.rank) ? " late" : ""}`, cells: cellsOf(row) }))} />
        {found.ranks.length > mostRanks && <p class="faint">The first {mostRanks} of {grouped(found.ranks.length)} ranks; the data of this page has all.</p>}
        <Twin label="The map as a table">{() => (
          <Table label="us of waiting in a collective, by rank and layer" rows={shown} columns={[
            { head: "rank", left: true, cell: (row) => row.rank },
            ...numbers.map((layer) => ({ head: String(layer), cell: (row: Rank) => { const cell = row.layers.find((one) => one.layer === layer); return cell ? <Between of={cell.wait} unit={1e3} /> : ""; } })),
          ]} />
        )}</Twin>
      </>}
    </Section>
  );
}

function Collectives({ label, rows }: { label: string; rows: Collective[] }) {
  return (
    <Table label={label} rows={rows} columns={[
      { head: "brick", left: true, cell: (row) => <><Name of={row.brick} />{row.layer !== undefined && ` layer ${row.layer}`}</> },
      { head: "group", left: true, cell: (row) => (row.group === "" ? "all" : <Name of={row.group} />) },
      { head: "collectives", cell: (row) => grouped(row.collectives), key: (row) => row.collectives },
      { head: "wait us", cell: (row) => <Between of={row.wait} unit={1e3} />, key: (row) => middle(row.wait), hint: "begin of the last rank less the own begin, on average" },
      { head: "move us", cell: (row) => <Between of={row.move} unit={1e3} />, key: (row) => middle(row.move), hint: "own end less the begin of the last rank, on average" },
      { head: "wait %", cell: (row) => `${fixed(row.least_share * 100, 1)} to ${fixed(row.most_share * 100, 1)}`, key: (row) => row.least_share },
      { head: "verdict", left: true, cell: (row) => <b>{row.verdict}</b> },
      { head: "most often last", left: true, cell: (row) => (row.last === 0 ? "none for certain" : `rank ${row.last_rank}: ${grouped(row.last)}`) },
    ]} />
  );
}

export function Ranks({ found }: { found: RanksFound }) {
  const receiving = found.ranks.filter((row) => row.messages > 0);
  return (
    <main id="main">
      <Answer found={found} />
      <Map found={found} />
      <Section id="collectives" title="Collectives" lead="Waiting for the last rank against moving data. A verdict stands where the errors of the clocks leave only one.">
        {found.groups.length === 0 ? <Absent why="no collective was matched" /> : <Collectives label="Collectives by brick and group" rows={found.groups} />}
        {found.layers.length > 0 && <Twin label="By layer">{() => <Collectives label="Collectives by layer" rows={found.layers} />}</Twin>}
        {found.worst.length > 0 && <Table label="The longest waits" rows={found.worst} columns={[
          { head: "longest waits", left: true, cell: (row) => <><Name of={row.brick} /> {grouped(row.number)}</> },
          { head: "step", cell: (row) => row.step ?? "" },
          { head: "layer", cell: (row) => row.layer ?? "" },
          { head: "wait us", cell: (row) => <Between of={row.wait} unit={1e3} />, key: (row) => middle(row.wait) },
          { head: "move us", cell: (row) => <Between of={row.move} unit={1e3} />, key: (row) => middle(row.move) },
          { head: "verdict", left: true, cell: (row) => row.verdict },
          { head: "ranks as they arrived", left: true, cell: (row) => row.arrivals.join(" ") },
        ]} />}
      </Section>
      <Section id="ranks" title="Ranks and their clocks">
        <Table label="Ranks" rows={found.ranks} columns={[
          { head: "rank", left: true, cell: (row) => row.rank, key: (row) => row.rank },
          { head: "host", left: true, cell: (row) => <Name of={row.host} /> },
          { head: "file", left: true, cell: (row) => <Name of={fileOf(row)} /> },
          { head: "clock", left: true, cell: (row) => row.clock },
          { head: "offset us", cell: (row) => <Num of={row.offset_ns} unit={1e3} decimals={1} /> },
          { head: "\u00b1 us", cell: (row) => <Num of={row.error_ns} unit={1e3} decimals={1} />, key: (row) => valueOf(row.error_ns) },
          { head: "drift ppm", cell: (row) => <Num of={row.drift_ppm} decimals={2} /> },
          { head: "last", cell: (row) => <span class="num" data-v={row.last}>{grouped(row.last)}</span>, key: (row) => row.last, hint: "of its collectives it certainly was the last to arrive" },
          { head: "at most", cell: (row) => grouped(row.last_at_most), key: (row) => row.last_at_most },
          { head: "wait ms", cell: (row) => <Between of={row.wait} unit={1e6} decimals={2} />, key: (row) => middle(row.wait) },
          { head: "of ms", cell: (row) => fixed(row.time_ns / 1e6, 2), key: (row) => row.time_ns },
          { head: "busy %", cell: (row) => <Num of={row.busy_share} unit={0.01} decimals={1} />, key: (row) => valueOf(row.busy_share) },
          { head: "hidden %", cell: (row) => <Num of={row.hidden_share} unit={0.01} decimals={1} />, key: (row) => valueOf(row.hidden_share), hint: "of its time in collectives other work ran beside them" },
        ]} />
        {receiving.length > 0 && <Table label="Pipeline bubbles" rows={receiving} columns={[
          { head: "rank", left: true, cell: (row) => row.rank },
          { head: "receives", cell: (row) => grouped(row.messages) },
          { head: "waiting for their sends, ms", cell: (row) => <Between of={row.message_wait} unit={1e6} decimals={2} /> },
        ]} />}
        {found.transfers.map((one, i) => <p key={i}>kv_transfer rank {one.from} {one.directed ? "to" : "and"} rank {one.to}: {grouped(one.transfers)}, <Between of={one.time} unit={1e3} suffix=" us" /> on average</p>)}
        {found.experts.length > 0 && <Table label="Expert load" rows={[...found.experts].sort((a, b) => b.imbalance - a.imbalance).slice(0, 12)} columns={[
          { head: "expert load", left: true, cell: (row) => `layer ${row.layer}` },
          { head: "most", cell: (row) => fixed(row.most, 0) },
          { head: "on rank", cell: (row) => row.rank },
          { head: "mean", cell: (row) => fixed(row.mean, 1) },
          { head: "most / mean", cell: (row) => fixed(row.imbalance, 2) },
        ]} />}
      </Section>
    </main>
  );
}
