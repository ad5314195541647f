// SPDX-License-Identifier: Apache-2.0
// Where two runs part: the first divergent operation, and how the distance grows from layer to layer.
import { type Figure, valueOf } from "./data";
import { Absent, Name, Num, Section, Table, useWidth } from "./parts";
import { grouped, visible } from "./text";

interface Place { step?: number; step_b?: number; phase?: string; position?: number; layer?: number; brick: string; role: string; occurrence: number }
interface Pair { place: Place; difference: string; distance: { estimate: Figure; low: Figure; high: Figure } }
export interface Divergence {
  same: boolean; path_a: string; path_b: string; compared: number; identical: number; divergent: number; exact: boolean; tolerance: number;
  tolerance_of?: string; first?: Pair & { inputs: string; input_tensors: Pair[] }; worst?: Pair; layers: (Pair & { layer: number })[]; flip_count: number;
  only_in_a: { tensors: number; steps: number }; only_in_b: { tensors: number; steps: number }; notes: string[];
}

const file = (path: string) => path.slice(path.lastIndexOf("/") + 1);
const where = (place: Place) => `${place.step === undefined ? "outside of steps" : `step ${place.step}`}${place.layer === undefined ? "" : ` layer ${place.layer}`} brick ${visible(place.brick, 60)}`;
const inputs: Record<string, string> = { agree: "What went in agrees, so it is the operation itself.", disagree: "What went in disagrees already: it was handed down." };
const small = (value: number) => (value === 0 ? "0" : Number(value.toPrecision(3)).toString());

function Distances({ found }: { found: Divergence }) {
  const [box, width] = useWidth();
  const values = found.layers.map((one) => valueOf(one.distance.estimate));
  const above = [...values, found.tolerance].filter((value): value is number => value !== undefined && value > 0);
  const y0 = Math.floor(Math.log10(Math.min(...above))) - 1, y1 = Math.max(Math.ceil(Math.log10(Math.max(...above)) + 0.05), y0 + 1);
  const left = 64, right = 12, top = 12, bottom = 36, height = 260, wide = Math.min(width, 1100);
  const x = (i: number) => left + 10 + (i / Math.max(1, found.layers.length - 1)) * (wide - left - right - 20);
  const y = (value: number) => (value <= 0 ? height - bottom : height - bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (height - top - bottom));
  const every = Math.ceil(found.layers.length / Math.max(1, (wide - left) / 28));
  return (
    <div ref={box}>
      {width > 0 && <div class="chart">
        <svg width={wide} height={height} role="img" aria-label="Distance by layer; the table below has it">
          {Array.from({ length: y1 - y0 + 1 }, (_, i) => y0 + i).map((power) => <g key={power}><line x1={left} x2={wide - right} y1={y(10 ** power)} y2={y(10 ** power)} stroke="var(--line)" /><text class="dim" x={left - 6} y={y(10 ** power) + 4} text-anchor="end">{power === y0 ? "0" : `1e${power}`}</text></g>)}
          {found.tolerance > 0 && <><line x1={left} x2={wide - right} y1={y(found.tolerance)} y2={y(found.tolerance)} stroke="var(--warn)" stroke-dasharray="5 4" /><text x={wide - right} y={y(found.tolerance) - 5} text-anchor="end">tolerance {small(found.tolerance)}</text></>}
          {found.layers.map((one, i) => {
            const value = values[i], low = valueOf(one.distance.low), high = valueOf(one.distance.high);
            const beyond = value === undefined || value > found.tolerance;
            if (value === undefined) return <text key={i} x={x(i)} y={top + 10} text-anchor="middle">n/a</text>;
            return <g key={i}>
              {low !== undefined && high !== undefined && high > 0 && <line x1={x(i)} x2={x(i)} y1={y(low)} y2={y(high)} stroke="var(--firm)" stroke-width="2" />}
              {beyond ? <rect x={x(i) - 4} y={y(value) - 4} width="8" height="8" fill="var(--warn)" /> : <circle cx={x(i)} cy={y(value)} r="4" fill="var(--bg)" stroke="var(--c-attention)" stroke-width="2" />}
            </g>;
          })}
          {found.layers.map((one, i) => i % every === 0 && <text key={i} class="dim" x={x(i)} y={height - bottom + 16} text-anchor="middle">{one.layer}</text>)}
          <text class="dim" x={wide - right} y={height - 4} text-anchor="end">layer</text>
        </svg>
      </div>}
    </div>
  );
}

export function Diverge({ found }: { found: Divergence }) {
  const pairs: [string, Pair][] = [];
  if (found.first) pairs.push(["first", found.first], ...found.first.input_tensors.map((one): [string, Pair] => ["what went into it", one]));
  if (found.worst) pairs.push(["worst", found.worst]);
  return (
    <main id="main">
      <section id="answer" aria-labelledby="answer-h">
        <h2 id="answer-h" class="quiet">The answer</h2>
        {found.first
          ? <p class="verdict"><b>First divergence: {where(found.first.place)}.</b> {inputs[found.first.inputs] ?? ""}</p>
          : <p class="verdict"><b>{found.same ? "Nothing diverges." : "Nothing that both have diverges."}</b>{!found.same && " One run lacks what the other has."}</p>}
        <dl class="facts">
          <div><dt>compared</dt><dd><span data-v={found.compared}>{grouped(found.compared)}</span> <small>tensors</small></dd></div>
          <div><dt>identical</dt><dd><span data-v={found.identical}>{grouped(found.identical)}</span> <small>bit for bit</small></dd></div>
          <div><dt>divergent</dt><dd><span data-v={found.divergent}>{grouped(found.divergent)}</span> <small>beyond {found.exact ? "equality of all bits" : `a distance of ${small(found.tolerance)}`}{found.tolerance_of && `, that of ${found.tolerance_of}`}</small></dd></div>
          <div><dt>tokens that flip</dt><dd>{grouped(found.flip_count)} <small>the largest logit is another</small></dd></div>
          <div><dt>only in A</dt><dd>{grouped(found.only_in_a.tensors)} <small>tensors, and {grouped(found.only_in_a.steps)} steps</small></dd></div>
          <div><dt>only in B</dt><dd>{grouped(found.only_in_b.tensors)} <small>tensors, and {grouped(found.only_in_b.steps)} steps</small></dd></div>
        </dl>
        <p>A is <Name of={file(found.path_a)} />, the reference; B is <Name of={file(found.path_b)} />.</p>
        {found.notes.map((note) => <p key={note}><b>note</b> <Name of={note} most={600} /></p>)}
      </section>
      <Section id="amplification" title="From layer to layer" lead="Relative distance of what each layer gives on, in the first divergent step. A square is beyond the tolerance.">
        {found.layers.length === 0 ? <Absent why="nothing diverges in a layer" /> : <>
          <Distances found={found} />
          <Table label="Distance by layer" rows={found.layers} columns={[
            { head: "layer", cell: (one) => one.layer },
            { head: "brick", left: true, cell: (one) => <Name of={one.place.brick} /> },
            { head: "distance", cell: (one) => { const value = valueOf(one.distance.estimate); return value === undefined ? <Num of={one.distance.estimate} /> : <span class="num" data-v={value}>{small(value)}</span>; } },
            { head: "from", cell: (one) => small(valueOf(one.distance.low) ?? NaN) },
            { head: "to", cell: (one) => small(valueOf(one.distance.high) ?? NaN) },
            { head: "verdict", left: true, cell: (one) => ((valueOf(one.distance.estimate) ?? Infinity) > found.tolerance ? <b class="odd">beyond the tolerance</b> : "agrees") },
          ]} /></>}
      </Section>
      {pairs.length > 0 && <Section id="pairs" title="The tensors">
        <Table label="Tensors" rows={pairs} columns={[
          { head: "which", left: true, cell: ([word]) => word },
          { head: "place", left: true, cell: ([, pair]) => `${where(pair.place)}, ${pair.place.role} ${pair.place.occurrence}` },
          { head: "difference", left: true, cell: ([, pair]) => pair.difference },
          { head: "distance", cell: ([, pair]) => { const value = valueOf(pair.distance.estimate); return value === undefined ? <Num of={pair.distance.estimate} /> : small(value); } },
        ]} />
      </Section>}
    </main>
  );
}
