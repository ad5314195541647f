// SPDX-License-Identifier: Apache-2.0
// What the sections of the page are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Figure, reasonOf, valueOf } from "./data";
import { decimalsFor, fixed, visible } from "./text";

/** A name out of a recording: text, whatever it holds. */
export function Name({ of, most }: { of: string; most?: number }) {
  const text = visible(of, most ?? 80);
  return <bdi class="name" title={text.endsWith("\u2026") ? visible(of, 1000) : undefined}>{text}</bdi>;
}

/** A figure in `unit`s; n/a with its reason where it is absent. */
export function Num({ of, unit = 1, decimals, suffix = "" }: { of: Figure | undefined; unit?: number; decimals?: number; suffix?: string }) {
  const value = valueOf(of);
  if (value === undefined) return <span class="na" title={visible(reasonOf(of), 400)}>n/a</span>;
  const shown = value / unit;
  return <span class="num" data-v={value}>{fixed(shown, decimals ?? decimalsFor(Math.abs(shown)))}{suffix}</span>;
}

export function Section({ id, title, lead, children }: { id: string; title: string; lead?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section id={id} aria-labelledby={`${id}-h`}>
      <h2 id={`${id}-h`}>{title}</h2>
      {lead && <p class="lead">{lead}</p>}
      {children}
    </section>
  );
}

export function Absent({ why }: { why: string }) {
  return <p class="absent"><b>n/a</b> <Name of={why} most={400} /></p>;
}

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  /** What it is sorted by; without, it is not. */
  key?: (row: T) => number | string | undefined;
  left?: boolean;
  hint?: string;
}

function compare(a: number | string | undefined, b: number | string | undefined): number {
  if (a === undefined || b === undefined) return (a === undefined ? 1 : 0) - (b === undefined ? 1 : 0);
  return a < b ? -1 : a > b ? 1 : 0;
}

export function Table<T>({ label, columns, rows, foot }: { label: string; columns: Column<T>[]; rows: T[]; foot?: ComponentChildren }) {
  const [order, setOrder] = useState<{ column: number; up: boolean } | null>(null);
  const key = order && columns[order.column]?.key;
  const shown = key
    ? [...rows].sort((a, b) => {
        const x = key(a), y = key(b);
        // What is absent stays last either way.
        return x === undefined || y === undefined || order.up ? compare(x, y) : compare(y, x);
      })
    : rows;
  return (
    <Scroller label={label}>
      <table>
        <caption class="quiet">{label}</caption>
        <thead>
          <tr>
            {columns.map((column, i) => (
              <th key={i} scope="col" class={column.left ? "left" : ""} title={column.hint}
                aria-sort={order?.column === i ? (order.up ? "ascending" : "descending") : undefined}>
                {column.key ? (
                  <button type="button" onClick={() => setOrder(order?.column === i ? { column: i, up: !order.up } : { column: i, up: !!column.left })}>
                    {column.head}<span class="arrow" aria-hidden="true">{order?.column === i ? (order.up ? "\u25b2" : "\u25bc") : ""}</span>
                  </button>
                ) : column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, r) => (
            <tr key={r}>
              {columns.map((column, i) => i === 0
                ? <th key={i} scope="row" class="left">{column.cell(row)}</th>
                : <td key={i} class={column.left ? "left" : ""}>{column.cell(row)}</td>)}
            </tr>
          ))}
          {foot}
        </tbody>
      </table>
    </Scroller>
  );
}

/** What may be wider than the window; then it can be reached and scrolled by keys. */
export function Scroller({ label, children }: { label: string; children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [wide, setWide] = useState(false);
  useEffect(() => {
    const look = () => box.current && setWide(box.current.scrollWidth > box.current.clientWidth + 1);
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  });
  return <div class="scroll" ref={box} {...(wide ? { tabIndex: 0, role: "region", "aria-label": label } : {})}>{children}</div>;
}

/** The numbers behind a chart; made when they are opened. */
export function Twin({ label, children }: { label: string; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="twin" onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>{label}</summary>
      {open && children()}
    </details>
  );
}

/** One of several, as a row of buttons. */
export function Choice<T extends string | number>({ label, options, value, onChange }: {
  label: string; options: { value: T; text: string }[]; value: T; onChange: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map((option) => (
        <button type="button" key={option.value} aria-pressed={option.value === value} onClick={() => onChange(option.value)}>{visible(option.text, 40)}</button>
      ))}
    </div>
  );
}

/** The width of an element, as it changes. */
export function useWidth(): [{ current: HTMLDivElement | null }, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!box.current) return;
    const watch = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]?.contentRect.width ?? 0)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}

/** Draws again before the page is printed and after: paper is light. */
export function usePrinted(redraw: () => void): void {
  useEffect(() => {
    addEventListener("beforeprint", redraw);
    addEventListener("afterprint", redraw);
    return () => { removeEventListener("beforeprint", redraw); removeEventListener("afterprint", redraw); };
  });
}

/** A colour of the style sheet, as it is now. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
