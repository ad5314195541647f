// SPDX-License-Identifier: Apache-2.0
// Brick by layer against the median of the row; what is odd is framed and named.
import { type LayerRow, type Layers as LayerData, type Part, valueOf } from "./data";
import { beside, Heat, type HeatCell } from "./heat";
import { Absent, Name, Num, Section, Table, Twin } from "./parts";
import { fixed, visible } from "./text";

const nameOf = (row: { name: string }) => (row.name === "" ? "whole layer" : visible(row.name, 26));

export function Layers({ layers, phase }: { layers: Part<LayerData>; phase: string }) {
  const rows = "found" in layers ? layers.found.rows.filter((row) => row.phase === phase) : [];
  const odd = "found" in layers ? layers.found.odd.filter((one) => one.phase === phase) : [];
  const metric = "found" in layers && layers.found.metric === "p50" ? "median" : "mean";
  const numbers = [...new Set(rows.flatMap((row) => row.cells.map((cell) => cell.layer)))].sort((a, b) => a - b);
  const isOdd = (row: LayerRow, layer: number) => odd.some((one) => one.name === row.name && one.source === row.source && one.layer === layer);
  const cellsOf = (row: LayerRow): Map<number, HeatCell> => {
    const median = valueOf(row.median), cells = new Map<number, HeatCell>();
    for (const { layer, value: figure } of row.cells) {
      const value = valueOf(figure);
      if (value === undefined || median === undefined) continue;
      const framed = isOdd(row, layer);
      cells.set(layer, { value, median, framed, words: `${fixed(value / 1e3, 2)} us${beside(value, median)}${framed ? ", odd" : ""}` });
    }
    return cells;
  };
  return (
    <Section id="layers" title="Bricks across layers" lead={`The ${metric} time of a call in each layer against the median of its row. A frame marks a layer that is out of line.`}>
      {"absent" in layers ? <Absent why={layers.absent} /> : rows.length === 0 ? <Absent why="no layer of these steps was recorded" /> : (
        <>
          {odd.length > 0
            ? <ul class="why">{odd.slice(0, 12).map((one, i) => <li key={i}><b class="odd">odd</b> layer {one.layer} <Name of={nameOf(one)} />: <Num of={one.value} unit={1e3} decimals={2} suffix=" us" />, the other layers <Num of={one.median} unit={1e3} decimals={2} suffix=" us" />{one.median > 0 && <> ({fixed(one.value / one.median, 2)}x, robust z {one.robust_z.toFixed(1)})</>}</li>)}</ul>
            : <p>No odd layer.</p>}
          <Heat label="Heat map of bricks by layer" legend="the median" step={0.125} rows={rows.map((row) => ({ name: nameOf(row), cells: cellsOf(row) }))} />
          <Twin label="The map as a table">{() => (
            <Table label="us of a call, by brick and layer" rows={rows} columns={[
              { head: "brick", left: true, cell: (row) => nameOf(row) },
              { head: "median", cell: (row) => <Num of={row.median} unit={1e3} decimals={2} /> },
              ...numbers.map((layer) => ({ head: String(layer), cell: (row: LayerRow) => { const value = row.cells.find((one) => one.layer === layer)?.value; return value === undefined ? "" : <>{isOdd(row, layer) && <b class="odd">! </b>}<Num of={value} unit={1e3} decimals={2} /></>; } })),
            ]} />
          )}</Twin>
          {layers.found.notes.map((note) => <p key={note}><b>note</b> <Name of={note} most={600} /></p>)}
        </>
      )}
    </Section>
  );
}
