// SPDX-License-Identifier: Apache-2.0
// Brick by layer against the median of the row; what is odd is framed and named.
import { useState } from "preact/hooks";
import { type LayerRow, type Layers as LayerData, type Odd, type Part, valueOf } from "./data";
import { Absent, Name, Num, Section, Table, Twin, useWidth } from "./parts";
import { fixed, visible } from "./text";

const step = 0.125; // of the median, a shade
const shades = ["cold-4", "cold-3", "cold-2", "cold-1", "alike", "hot-1", "hot-2", "hot-3", "hot-4"];

function shadeOf(value: number, median: number): number {
  if (!(median > 0)) return value > median ? 8 : 4;
  return Math.max(-4, Math.min(4, Math.round((value / median - 1) / step))) + 4;
}

const nameOf = (row: { name: string }) => (row.name === "" ? "whole layer" : visible(row.name, 26));

export function Layers({ layers, phase }: { layers: Part<LayerData>; phase: string }) {
  const [box, width] = useWidth();
  const [at, setAt] = useState<{ row: number; column: number } | null>(null);
  const rows = "found" in layers ? layers.found.rows.filter((row) => row.phase === phase) : [];
  const odd = "found" in layers ? layers.found.odd.filter((one) => one.phase === phase) : [];
  const metric = "found" in layers && layers.found.metric === "p50" ? "median" : "mean";
  const numbers = [...new Set(rows.flatMap((row) => row.cells.map((cell) => cell.layer)))].sort((a, b) => a - b);
  const isOdd = (row: LayerRow, layer: number) => odd.some((one) => one.name === row.name && one.source === row.source && one.layer === layer);
  const label = Math.min(170, Math.max(112, width * 0.28));
  const cell = Math.max(7, Math.min(24, Math.floor((width - label) / Math.max(1, numbers.length))));
  const high = 18, top = 20;
  const cells = rows.map((row) => new Map(row.cells.map((one) => [one.layer, one.value])));
  const words = (row: LayerRow, column: number): string => {
    const layer = numbers[column];
    const value = valueOf(row.cells.find((one) => one.layer === layer)?.value), median = valueOf(row.median);
    const head = `layer ${layer}, ${nameOf(row)}: `;
    if (value === undefined) return `${head}n/a`;
    const off = median ? `, ${fixed(Math.abs(100 * (value / median - 1)), 1)} % ${value < median ? "below" : "above"} the median` : "";
    return `${head}${fixed(value / 1e3, 2)} us${off}${layer !== undefined && isOdd(row, layer) ? ", odd" : ""}`;
  };
  const move = (event: KeyboardEvent) => {
    const by: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const go = by[event.key];
    if (!go || rows.length === 0) return;
    event.preventDefault();
    const from = at ?? { row: 0, column: -1 };
    setAt({ row: Math.max(0, Math.min(rows.length - 1, from.row + go[0])), column: Math.max(0, Math.min(numbers.length - 1, from.column + go[1])) });
  };
  const chosen = at && rows[at.row];
  const total = label + numbers.length * cell + 2;
  return (
    <Section id="layers" title="Bricks across layers" lead={`The ${metric} time of a call in each layer against the median of its row. A frame marks a layer that is out of line.`}>
      <div ref={box}>
        {"absent" in layers ? <Absent why={layers.absent} /> : rows.length === 0 ? <Absent why="no layer of these steps was recorded" /> : (
          <>
            {odd.length > 0
              ? <ul class="why">{odd.slice(0, 12).map((one, i) => <li key={i}><b class="odd">odd</b> layer {one.layer} <Name of={nameOf(one)} />: <Num of={one.value} unit={1e3} decimals={2} suffix=" us" />, the other layers <Num of={one.median} unit={1e3} decimals={2} suffix=" us" />{one.median > 0 && <> ({fixed(one.value / one.median, 2)}x, robust z {one.robust_z.toFixed(1)})</>}</li>)}</ul>
              : <p>No odd layer.</p>}
            {width > 0 && (
              <div class="chart scroll" tabIndex={0} role="group" aria-label="Heat map of bricks by layer; arrow keys move through it" onKeyDown={move}>
                <svg width={total} height={top + rows.length * high + 2} aria-hidden="true" onMouseLeave={() => setAt(null)}
                  onMouseMove={(event) => {
                    const area = (event.currentTarget as SVGElement).getBoundingClientRect();
                    const column = Math.floor((event.clientX - area.left - label) / cell), row = Math.floor((event.clientY - area.top - top) / high);
                    setAt(column >= 0 && column < numbers.length && row >= 0 && row < rows.length ? { row, column } : null);
                  }}>
                  {numbers.map((layer, i) => (numbers.length <= 12 || i === 0 || layer % (cell < 14 ? 10 : 5) === 0) && <text key={layer} class="dim" x={label + i * cell + cell / 2} y="13" text-anchor="middle">{layer}</text>)}
                  {rows.map((row, r) => (
                    <g key={r} transform={`translate(0 ${top + r * high})`}>
                      <text x={label - 8} y="13" text-anchor="end">{visible(nameOf(row), Math.floor((label - 12) / 7))}</text>
                      {numbers.map((layer, i) => {
                        const value = valueOf(cells[r]!.get(layer)), median = valueOf(row.median);
                        if (value === undefined || median === undefined) return null;
                        const shade = shadeOf(value, median);
                        const x = label + i * cell;
                        return (
                          <g key={layer}>
                            <rect x={x} y="0" width={cell - 1} height={high - 1} fill={`var(--${shades[shade]})`} />
                            {shade !== 4 && cell >= 11 && <path d={shade > 4 ? `M${x + cell / 2 - 4} 11l3.5 -6l3.5 6z` : `M${x + cell / 2 - 4} 6l3.5 6l3.5 -6z`} fill={shade === 0 || shade === 8 ? "var(--on)" : "var(--ink)"} />}
                            {isOdd(row, layer) && <rect x={x + 0.5} y="0.5" width={cell - 2} height={high - 2} fill="none" stroke="var(--ink)" stroke-width="2" />}
                          </g>
                        );
                      })}
                    </g>
                  ))}
                  {at && <rect x={label + at.column * cell - 1} y={top + at.row * high - 1} width={cell + 1} height={high + 1} fill="none" stroke="var(--accent)" stroke-width="2" />}
                </svg>
              </div>
            )}
            <p class="readout" aria-live="polite">{chosen ? words(chosen, at.column) : <span class="faint">{"Below \u25bc, alike, above \u25b2; each shade is 12.5 % of the median. Point at a cell, or use the arrow keys."}</span>}</p>
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
      </div>
    </Section>
  );
}
export type { Odd };
