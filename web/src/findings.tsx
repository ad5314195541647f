// SPDX-License-Identifier: Apache-2.0
// What is worth doing: claims, each with what it rests on. Not there where nothing was found.
import { type Figure } from "./data";
import { Name, Num, Section, Table } from "./parts";
import { percent } from "./text";

export interface Finding {
  kind: string; phase: string; claim: string; at_most_ns: number; likely_ns: number; share: number; sure: string; because: string; refuted_by: string;
  evidence: { command: string; what: string; value: Figure; unit: string }[];
}
export interface FindingsData { runs: { findings: Finding[] }[] }

export function Findings({ found }: { found: Finding[] }) {
  return (
    <Section id="findings" title="What is worth doing" lead="Claims about this run, the most worthwhile first: the most that each could gain, what it rests on, and what would show that it is wrong.">
      {found.map((one, i) => (
        <article key={i}>
          <h3>{i + 1}. <Name of={one.claim} most={400} /></h3>
          <p>At most <b>{percent(one.share)}</b> of a {one.phase} step (<Num of={one.at_most_ns} unit={1e3} decimals={1} /> us), likely <Num of={one.likely_ns} unit={1e3} decimals={1} /> us. <b>{one.sure}</b>: <Name of={one.because} most={400} />.</p>
          <Table label={`Evidence of finding ${i + 1}`} rows={one.evidence} columns={[
            { head: "evidence", left: true, cell: (row) => <Name of={row.what} most={120} /> },
            { head: "value", cell: (row) => <Num of={row.value} suffix={row.unit === "" ? "" : ` ${row.unit}`} /> },
            { head: "as text", left: true, cell: (row) => <code>{row.command}</code> },
          ]} />
          <p class="faint">Refuted by <Name of={one.refuted_by} most={400} />.</p>
        </article>
      ))}
    </Section>
  );
}
