// SPDX-License-Identifier: Apache-2.0
// Rows by layers, each cell a shade of how far it is from what it is held against; moved through by pointer and by keys.
import { useState } from "preact/hooks";
import { Name, useWidth } from "./parts";
import { fixed, visible } from "./text";

const shades = ["cold-4", "cold-3", "cold-2", "cold-1", "alike", "hot-1", "hot-2", "hot-3", "hot-4"];
const alike = 4;

function shadeOf(value: number, median: number, step: number): number {
  if (!(median > 0)) return value > median ? shades.length - 1 : alike;
  return Math.max(-alike, Math.min(alike, Math.round((value / median - 1) / step))) + alike;
}

export interface HeatCell {
  value: number; median: number;
  /** In words, after "layer 3, NAME: ". */
  words: string;
  framed?: boolean;
}
export interface HeatRow { name: string; cells: Map<number, HeatCell> }

/** `step`: of the median, a shade. */
export function Heat({ label, legend, rows, step }: { label: string; legend: string; rows: HeatRow[]; step: number }) {
  const [box, width] = useWidth();
  const [at, setAt] = useState<{ row: number; column: number } | null>(null);
  const numbers = [...new Set(rows.flatMap((row) => [...row.cells.keys()]))].sort((a, b) => a - b);
  const room = Math.min(170, Math.max(112, width * 0.28));
  const cell = Math.max(7, Math.min(24, Math.floor((width - room) / Math.max(1, numbers.length))));
  const high = 18, top = 20;
  const move = (event: KeyboardEvent) => {
    const by: Record<string, [number, number]> = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const go = by[event.key];
    if (!go || rows.length === 0) return;
    event.preventDefault();
    const from = at ?? { row: 0, column: -1 };
    setAt({ row: Math.max(0, Math.min(rows.length - 1, from.row + go[0])), column: Math.max(0, Math.min(numbers.length - 1, from.column + go[1])) });
  };
  const chosen = at && rows[at.row], layer = at ? numbers[at.column] : undefined;
  return (
    <div ref={box}>
      {width > 0 && (
        <div class="chart scroll" tabIndex={0} role="group" aria-label={`${label}; arrow keys move through it`} onKeyDown={move}>
          <svg width={room + numbers.length * cell + 2} height={top + rows.length * high + 2} aria-hidden="true" onMouseLeave={() => setAt(null)}
            onMouseMove={(event) => {
              const area = (event.currentTarget as SVGElement).getBoundingClientRect();
              const column = Math.floor((event.clientX - area.left - room) / cell), row = Math.floor((event.clientY - area.top - top) / high);
              setAt(column >= 0 && column < numbers.length && row >= 0 && row < rows.length ? { row, column } : null);
            }}>
            {numbers.map((number, i) => (numbers.length <= 12 || i === 0 || number % (cell < 14 ? 10 : 5) === 0) && <text key={number} class="dim" x={room + i * cell + cell / 2} y="13" text-anchor="middle">{number}</text>)}
            {rows.map((row, r) => (
              <g key={r} transform={`translate(0 ${top + r * high})`}>
                <text x={room - 8} y="13" text-anchor="end">{visible(row.name, Math.floor((room - 12) / 7))}</text>
                {numbers.map((number, i) => {
                  const one = row.cells.get(number);
                  if (!one) return null;
                  const shade = shadeOf(one.value, one.median, step), x = room + i * cell;
                  return (
                    <g key={number}>
                      <rect x={x} y="0" width={cell - 1} height={high - 1} fill={`var(--${shades[shade]})`} />
                      {shade !== alike && cell >= 11 && <path d={shade > alike ? `M${x + cell / 2 - 4} 11l3.5 -6l3.5 6z` : `M${x + cell / 2 - 4} 6l3.5 6l3.5 -6z`} fill={shade === 0 || shade === shades.length - 1 ? "var(--on)" : "var(--ink)"} />}
                      {one.framed && <rect x={x + 0.5} y="0.5" width={cell - 2} height={high - 2} fill="none" stroke="var(--ink)" stroke-width="2" />}
                    </g>
                  );
                })}
              </g>
            ))}
            {at && <rect x={room + at.column * cell - 1} y={top + at.row * high - 1} width={cell + 1} height={high + 1} fill="none" stroke="var(--accent)" stroke-width="2" />}
          </svg>
        </div>
      )}
      <p class="readout" aria-live="polite">{chosen && layer !== undefined
        ? <Name of={`layer ${layer}, ${chosen.name}: ${chosen.cells.get(layer)?.words ?? "n/a"}`} most={300} />
        : <span class="faint">{`Below \u25bc, alike, above \u25b2; each shade is ${100 * step} % of ${legend}. Point at a cell, or use the arrow keys.`}</span>}</p>
    </div>
  );
}

/** "12.5 % above the median"; nothing where they are equal or there is none. */
export function beside(value: number, median: number | undefined): string {
  return median ? `, ${fixed(Math.abs(100 * (value / median - 1)), 1)} % ${value < median ? "below" : "above"} the median` : "";
}
