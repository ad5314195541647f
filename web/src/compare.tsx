// SPDX-License-Identifier: Apache-2.0
// What changed between runs: each row with its interval on one scale, and the word that it comes to.
import { type Figure, phaseOrder, valueOf } from "./data";
import { Name, Num, Scroller, Section, Table } from "./parts";
import { fixed, grouped, percent, ticks } from "./text";

interface Change { estimate: Figure; low: Figure; high: Figure }
interface CompareRow {
  phase: string; subject: string; name?: string; layer?: number; device: boolean; statistic: string; per_replay: boolean; base_ns: Figure; new_ns: Figure;
  base_noise: Figure; change: Change; own_change: Change; verdict: string; by_own_change: boolean; reason?: string;
}
export interface Comparison {
  comparable: boolean; one_step: boolean; same_band: number; base: { name: string }[]; new: { name: string }[]; key: { field: string; value: string }[];
  differences: { field: string; base: string; new: string; ignored: boolean }[]; rows: CompareRow[];
  attributions: { phase: string; base_ns: number; new_ns: number; change_ns: number; parts: { name: string; base_ns: number; new_ns: number; change_ns: number }[] }[];
  gates: { gate: string; outcome: string; sentence: string }[]; notes: string[];
}

const nameOf = (row: CompareRow) => `${row.subject === "layer" ? `layer\u00a0${row.layer}` : row.subject === "step" ? "step" : row.name ?? ""}${row.device ? " (device)" : ""}`;
const changeOf = (row: CompareRow) => (row.by_own_change ? row.own_change : row.change);
const most = 100; // beyond that a change is no number that anybody reads
const signed = (share: number, decimals = 2) => (share > most ? `beyond +${grouped(100 * most)} %` : `${share > 0 ? "+" : share < 0 ? "-" : ""}${fixed(Math.abs(share) * 100, Math.abs(share) >= 10 ? 0 : decimals)} %`);
const file = (path: string) => path.slice(path.lastIndexOf("/") + 1);

const wide = 320, high = 22;
const marks: Record<string, string> = { FAST: "var(--c-attention)", SLOW: "var(--warn)" };

/** So far as the estimates reach; intervals that go on have an arrow. */
function reachOf(rows: CompareRow[], band: number): number {
  const sizes = rows.map((row) => Math.abs(valueOf(changeOf(row).estimate) ?? 0));
  return Math.max(band * 3, 1.25 * Math.max(0, ...sizes));
}

function Interval({ row, reach, band }: { row: CompareRow; reach: number; band: number }) {
  const { estimate, low, high: up } = changeOf(row);
  const at = valueOf(estimate), from = valueOf(low), to = valueOf(up);
  const x = (share: number) => wide / 2 + (Math.max(-reach, Math.min(reach, share)) / reach) * (wide / 2 - 6);
  const ink = marks[row.verdict] ?? "var(--c-other)";
  return (
    <svg width={wide} height={high} aria-hidden="true">
      <rect x={x(-band)} width={Math.max(1, x(band) - x(-band))} height={high} fill="var(--alike)" />
      <line x1={x(0)} x2={x(0)} y2={high} stroke="var(--firm)" />
      {at !== undefined && from !== undefined && to !== undefined && <>
        <line x1={x(from)} x2={x(to)} y1={high / 2} y2={high / 2} stroke={ink} stroke-width="2" />
        {from < -reach ? <path d={`M${x(from) - 5} ${high / 2}l7 -4v8z`} fill={ink} /> : <line x1={x(from)} x2={x(from)} y1="6" y2={high - 6} stroke={ink} stroke-width="2" />}
        {to > reach ? <path d={`M${x(to) + 5} ${high / 2}l-7 -4v8z`} fill={ink} /> : <line x1={x(to)} x2={x(to)} y1="6" y2={high - 6} stroke={ink} stroke-width="2" />}
        {row.verdict === "FAST" || row.verdict === "SLOW" ? <rect x={x(at) - 5} y={high / 2 - 5} width="10" height="10" fill={ink} /> : <circle cx={x(at)} cy={high / 2} r="4" fill="var(--bg)" stroke={ink} stroke-width="2" />}
      </>}
    </svg>
  );
}

function Axis({ reach }: { reach: number }) {
  const x = (share: number) => wide / 2 + (share / reach) * (wide / 2 - 6);
  return (
    <svg width={wide} height="16" role="img" aria-label={`change, from ${signed(-reach, 0)} to ${signed(reach, 0)}`}>
      {ticks(-reach, reach, 4).map((at) => <text key={at} x={x(at)} y="12" text-anchor={x(at) < 24 ? "start" : x(at) > wide - 24 ? "end" : "middle"} style={{ fill: "var(--faint)", fontSize: "11px" }}>{Math.abs(at) < 1e-12 ? "0" : `${at > 0 ? "+" : ""}${Number((at * 100).toPrecision(3))} %`}</text>)}
    </svg>
  );
}

function Forest({ rows, phase, band }: { rows: CompareRow[]; phase: string; band: number }) {
  const reach = reachOf(rows, band);
  return (
    <Scroller label={`Changes of ${phase} steps`}>
      <table class="forest">
        <caption class="quiet">Changes of {phase} steps</caption>
        <thead><tr><th scope="col" class="left">what</th><th scope="col" class="left">verdict</th><th scope="col">change</th><th scope="col">interval</th><th scope="col"><Axis reach={reach} /></th><th scope="col">base us</th><th scope="col">new us</th><th scope="col">noise</th></tr></thead>
        <tbody>{rows.map((row, i) => {
          const { estimate, low, high: up } = changeOf(row);
          const share = valueOf(estimate), from = valueOf(low), to = valueOf(up);
          return (
            <tr key={i} class={row.subject === "step" ? "whole" : ""}>
              <th scope="row" class="left"><Name of={nameOf(row)} /> {row.subject === "category" && <span class="faint">category</span>}</th>
              <td class="left" title={row.reason}><b class={row.verdict === "SLOW" ? "odd" : ""}>{row.verdict}</b>{row.by_own_change && " *"}</td>
              <td>{share === undefined ? <Num of={estimate} /> : <span class="num" data-v={share}>{signed(share)}</span>}</td>
              <td>{from === undefined || to === undefined ? <Num of={low} /> : `${signed(from)} .. ${signed(to)}`}</td>
              <td class="plot"><Interval row={row} reach={reach} band={band} /></td>
              <td><Num of={row.base_ns} unit={1e3} /></td><td><Num of={row.new_ns} unit={1e3} /></td><td>{typeof row.base_noise === "number" ? percent(row.base_noise) : <Num of={row.base_noise} />}</td>
            </tr>
          );
        })}</tbody>
      </table>
    </Scroller>
  );
}

const tooSmall = "less than 1 % of the step"; // rows that the text leaves out, too

export function Compare({ comparison }: { comparison: Comparison }) {
  const rows = comparison.rows.filter((row) => row.reason !== tooSmall);
  const steps = phaseOrder.flatMap((phase) => rows.filter((row) => row.subject === "step" && row.phase === phase));
  const phases = [...new Set([...phaseOrder, ...rows.map((row) => row.phase)])].filter((phase) => rows.some((row) => row.phase === phase));
  const subjects: [string, string][] = [["brick", "Bricks"], ["category", "Categories"], ["layer", "Layers"]];
  return (
    <main id="main">
      <section id="answer" aria-labelledby="answer-h">
        <h2 id="answer-h" class="quiet">The answer</h2>
        {!comparison.comparable && <p class="verdict"><b>Not comparable.</b> The runs differ in what must be equal.</p>}
        {steps.map((row) => {
          const { estimate, low, high: up } = changeOf(row);
          const share = valueOf(estimate), from = valueOf(low), to = valueOf(up);
          return <p key={row.phase} class="verdict">{row.phase} step {row.statistic}: <b class={row.verdict === "SLOW" ? "odd" : ""}>{row.verdict}</b>{share !== undefined && <> {signed(share)}</>}{from !== undefined && to !== undefined && <span class="faint"> ({signed(from)} .. {signed(to)})</span>} {row.reason && <Name of={row.reason} most={300} />}</p>;
        })}
        <p>{comparison.base.length} {comparison.base.length === 1 ? "run" : "runs"} before, {comparison.new.length} after. {comparison.one_step && "Each side is the ranks of one step: this says that two steps differ, not the builds."}</p>
        {comparison.gates.length > 0 && <ul class="why">{comparison.gates.map((gate) => <li key={gate.gate}><b class={gate.outcome === "passed" ? "" : "odd"}>gate {gate.outcome}</b> <Name of={gate.gate} />: <Name of={gate.sentence} most={500} /></li>)}</ul>}
        <ul class="why">
          {comparison.differences.map((one) => <li key={one.field}><b class={one.ignored ? "" : "odd"}>differs{one.ignored && " (ignored)"}</b> <Name of={one.field} />: <Name of={one.base} /> before, <Name of={one.new} /> after</li>)}
          {comparison.notes.map((note) => <li key={note}><b>note</b> <Name of={note} most={1000} /></li>)}
        </ul>
      </section>
      {phases.map((phase) => {
        const mine = rows.filter((row) => row.phase === phase);
        const parts = comparison.attributions.filter((one) => one.phase === phase);
        return (
          <Section key={phase} id={`changes-${phase}`} title={`Changes of ${phase} steps`} lead={<>New against base, with the interval that holds the change. The grey band is what counts as the same, {percent(comparison.same_band)} each way. A square is decided, a ring is not.</>}>
            <Forest rows={mine.filter((row) => row.subject === "step" || row.subject === "brick")} phase={phase} band={comparison.same_band} />
            {mine.some((row) => row.by_own_change) && <p>* against the pace of the other bricks of the same runs</p>}
            {subjects.slice(1).map(([subject, title]) => mine.some((row) => row.subject === subject) && <div key={subject}><h3>{title}</h3><Forest rows={mine.filter((row) => row.subject === subject)} phase={phase} band={comparison.same_band} /></div>)}
            {parts.map((one, i) => <div key={i}><h3>What made up the change of a step</h3>
              <Table label="Change of a step by brick" rows={[...one.parts, { name: "step", base_ns: one.base_ns, new_ns: one.new_ns, change_ns: one.change_ns }]} columns={[
                { head: "brick", left: true, cell: (part) => <Name of={part.name} /> },
                { head: "base us", cell: (part) => <Num of={part.base_ns} unit={1e3} />, key: (part) => part.base_ns },
                { head: "new us", cell: (part) => <Num of={part.new_ns} unit={1e3} />, key: (part) => part.new_ns },
                { head: "change us", cell: (part) => `${part.change_ns > 0 ? "+" : ""}${(part.change_ns / 1e3).toFixed(1)}`, key: (part) => part.change_ns },
                { head: "change", left: true, cell: (part) => <Part of={part.change_ns} most={Math.max(...one.parts.map((each) => Math.abs(each.change_ns)), Math.abs(one.change_ns), 1)} /> },
              ]} /></div>)}
          </Section>
        );
      })}
      <Section id="runs" title="The runs">
        <Table label="Runs" rows={[...comparison.base.map((run) => ({ side: "base", run })), ...comparison.new.map((run) => ({ side: "new", run }))]} columns={[
          { head: "recording", left: true, cell: (one) => <Name of={file(one.run.name)} /> },
          { head: "side", left: true, cell: (one) => one.side },
        ]} />
        <h3>What is equal</h3>
        <Table label="Key" rows={comparison.key} columns={[{ head: "field", left: true, cell: (one) => <Name of={one.field} /> }, { head: "value", left: true, cell: (one) => <Name of={one.value} /> }]} />
      </Section>
    </main>
  );
}

function Part({ of, most }: { of: number; most: number }) {
  const half = 60, size = (Math.abs(of) / most) * half;
  return <svg width={2 * half} height="12" aria-hidden="true"><line x1={half} x2={half} y2="12" stroke="var(--firm)" /><rect x={of < 0 ? half - size : half} width={size} y="2" height="8" fill={of < 0 ? "var(--c-attention)" : "var(--warn)"} /></svg>;
}
