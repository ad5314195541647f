// SPDX-License-Identifier: Apache-2.0
// What became of the captured graphs.
import type { Replays } from "./data";
import { Name, Num, Section, Table } from "./parts";
import { grouped } from "./text";

export function Graphs({ replays }: { replays: Replays }) {
  const checks: Record<string, string> = { differ: "A capture lost or gained nodes against the one before.", agree: "Captures of one key hold the same nodes.", not_compared: "No key was captured twice." };
  return (
    <Section id="graphs" title="Life of captured graphs" lead={checks[replays.node_check]}>
      <Table label="Captured graphs" rows={replays.graphs} columns={[
        { head: "graph", left: true, cell: (row) => row.graph },
        { head: "captures", cell: (row) => row.captures, key: (row) => row.captures },
        { head: "updates", cell: (row) => row.updates },
        { head: "evictions", cell: (row) => row.evictions },
        { head: "replays", cell: (row) => grouped(row.replays), key: (row) => row.replays },
        { head: "timed", cell: (row) => grouped(row.instrumented) },
        { head: "eager steps", cell: (row) => grouped(row.eager_steps.reduce((sum, one) => sum + one.count, 0)) },
        { head: "rows padded", cell: (row) => <Num of={row.padding_wasted} unit={0.01} decimals={1} suffix={" %"} />, hint: "rows replayed that carried no work" },
        { head: "plain span us", cell: (row) => <Num of={row.plain_span_ns} unit={1e3} decimals={1} /> },
        { head: "device us", cell: (row) => <Num of={row.device_ns} unit={1e3} decimals={1} /> },
        { head: "closure", cell: (row) => <Num of={row.closure} unit={0.01} decimals={2} suffix={" %"} />, hint: "sum of the parts against the whole replay" },
        { head: "capture us", cell: (row) => <Num of={row.capture_ns} unit={1e3} decimals={1} /> },
      ]} />
      <ul class="why">
        {replays.graphs.flatMap((row) => [
          ...row.eager_steps.map((one) => <li key={`${row.graph} ${one.reason}`}>graph {row.graph}: {grouped(one.count)} eager steps, <Name of={one.reason} most={200} /></li>),
          ...row.node_changes.map((one) => <li key={`${row.graph} ${one.kernel}`}><b class="odd">changed</b> graph {row.graph}: <Name of={one.kernel} /> {one.before} before, {one.after} after</li>),
          ...(row.twin_reason ? [<li key={`${row.graph} twin`}>graph {row.graph}, its timed twin: <Name of={row.twin_reason} most={300} /></li>] : []),
        ])}
        {replays.notes.map((note) => <li key={note}><b>note</b> <Name of={note} most={600} /></li>)}
      </ul>
    </Section>
  );
}
