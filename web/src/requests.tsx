// SPDX-License-Identifier: Apache-2.0
// Requests of a server: how long they took, and which step a request waited for. Not there where none was marked.
import { type Figure, valueOf } from "./data";
import { Name, Num, Section, Table } from "./parts";
import { grouped } from "./text";

export interface RequestsData {
  requests: number; ended: number; cut: number; traced: number; notes: string[];
  times: { what: string; count: number; mean_ns: Figure; p50_ns: Figure; p90_ns: Figure; p99_ns: Figure; max_ns: Figure }[];
  waits: {
    id: string; trace?: string; phase: string; begin_ns: number; wait_ns: number; steps: number; step?: number; step_phase?: string;
    step_tokens?: number; step_ns?: number; ttft_ns: Figure; tpot_ns: Figure;
  }[];
}

const words: Record<string, string> = { ttft: "time to first token", tpot: "time per further token", kv_transfer: "KV transfer", total: "arrival to end" };
const ms = (of: Figure) => <Num of={of} unit={1e6} />;

/** `kept`: steps whose timelines are in this page. */
export function Requests({ found, kept, onOpen }: { found: RequestsData; kept: number[]; onOpen: (step: number) => void }) {
  return (
    <Section id="requests" title="Requests" lead={`${grouped(found.requests)} requests, ${grouped(found.ended)} of them ended in this recording${found.traced > 0 ? `, ${grouped(found.traced)} with a trace id of their server` : ""}.`}>
      <Table label="How long requests took" rows={found.times} columns={[
        { head: "ms", left: true, cell: (row) => words[row.what] ?? row.what },
        { head: "requests", cell: (row) => grouped(row.count) },
        { head: "mean", cell: (row) => ms(row.mean_ns), key: (row) => valueOf(row.mean_ns) },
        { head: "p50", cell: (row) => ms(row.p50_ns), key: (row) => valueOf(row.p50_ns) },
        { head: "p90", cell: (row) => ms(row.p90_ns), key: (row) => valueOf(row.p90_ns) },
        { head: "p99", cell: (row) => ms(row.p99_ns), key: (row) => valueOf(row.p99_ns) },
        { head: "slowest", cell: (row) => ms(row.max_ns), key: (row) => valueOf(row.max_ns) },
      ]} />
      {found.waits.length > 0 && <>
        <h3>The longest waits</h3>
        <Table label="The longest waits" rows={found.waits} columns={[
          { head: "request", left: true, cell: (row) => <Name of={row.id} /> },
          { head: "waits in", left: true, cell: (row) => row.phase },
          { head: "wait ms", cell: (row) => ms(row.wait_ns), key: (row) => row.wait_ns },
          { head: "for step", left: true, cell: (row) => { const step = row.step; return step === undefined ? "no step ran" : <>{kept.includes(step) ? <a href="#timeline" onClick={() => onOpen(step)}>{step}</a> : step}, {row.step_phase} of {grouped(row.step_tokens ?? 0)} tokens</>; } },
          { head: "of it ms", cell: (row) => (row.step_ns === undefined ? "" : ms(row.step_ns)) },
          { head: "first token ms", cell: (row) => ms(row.ttft_ns), key: (row) => valueOf(row.ttft_ns) },
          { head: "per token ms", cell: (row) => ms(row.tpot_ns), key: (row) => valueOf(row.tpot_ns) },
        ]} />
      </>}
      {found.notes.map((note) => <p key={note}><b>note</b> <Name of={note} most={600} /></p>)}
    </Section>
  );
}
