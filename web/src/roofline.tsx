// SPDX-License-Identifier: Apache-2.0
// Bricks under the roof of the machine: work per byte against work per second, both on scales of powers of ten.
import { type Figure, type Report, type Row, valueOf } from "./data";
import { Absent, Name, Num, Section, Table, Twin, useWidth } from "./parts";
import { visible } from "./text";

const signs: Record<string, string> = { memory: "M-5 5H5V-5H-5z", compute: "M0 -6L6 5H-6z", cache: "M0 -6L6 0L0 6L-6 0z", latency: "M-5 -5L5 5M5 -5L-5 5", unknown: "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0" };

export function Roofline({ report, phase }: { report: Report; phase: string }) {
  const [box, width] = useWidth();
  const rows = report.bricks.filter((row) => row.phase === phase && (valueOf(row.roofline.intensity) ?? 0) > 0 && (valueOf(row.teraflops) ?? 0) > 0);
  const roofs = report.peaks.flatMap((peaks) => {
    const read = valueOf(peaks["read_gigabytes_per_second"] as Figure);
    const most = Math.max(valueOf(peaks["f32_teraflops"] as Figure) ?? 0, valueOf(peaks["bf16_teraflops"] as Figure) ?? 0);
    return read && most ? [{ place: peaks.place, read, most }] : [];
  });
  const x = (row: Row) => valueOf(row.roofline.intensity)!, y = (row: Row) => valueOf(row.teraflops)!;
  const xs = rows.map(x), ys = rows.map(y);
  for (const { read, most } of roofs) { xs.push((most * 1e3) / read); ys.push(most); }
  const span = (values: number[]): [number, number] => [Math.floor(Math.log10(Math.min(...values))), Math.max(Math.ceil(Math.log10(Math.max(...values)) + 0.05), Math.floor(Math.log10(Math.min(...values))) + 1)];
  const [x0, x1] = rows.length > 0 ? span(xs) : [0, 1], [y0, y1] = rows.length > 0 ? span(ys) : [0, 1];
  const left = 58, right = 12, top = 10, bottom = 40, height = 320;
  const wide = Math.min(width, 900);
  const px = (value: number) => left + ((Math.log10(value) - x0) / (x1 - x0)) * (wide - left - right);
  const py = (value: number) => height - bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (height - top - bottom);
  const decades = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const word = (power: number) => (power >= -3 && power <= 4 ? String(10 ** power).replace(/0{6,}\d$/, "") : `1e${power}`);
  const labelled = [...rows].sort((a, b) => b.sum_per_step_ns - a.sum_per_step_ns).slice(0, 8);
  const taken = rows.map((row) => ({ from: px(x(row)) - 7, to: px(x(row)) + 7, y: py(y(row)), row }));
  /** Beside its point, on the side that is free; else nowhere. */
  const labelOf = (row: Row) => {
    const at = { x: px(x(row)), y: py(y(row)) }, text = visible(row.name, 18), size = 7.2 * text.length;
    for (const end of [false, true]) {
      const from = end ? at.x - 10 - size : at.x + 10;
      const free = from > left && from + size < wide - right && taken.every((one) => one.row === row || Math.abs(one.y - at.y) >= 13 || one.to < from || one.from > from + size);
      if (!free) continue;
      taken.push({ from, to: from + size, y: at.y, row });
      return { x: end ? at.x - 10 : at.x + 10, y: at.y + 4, end, text };
    }
    return null;
  };
  return (
    <Section id="roofline" title="Roofline" lead="What each brick does for a byte it moves, against what it does in a second. Under the roof is what the machine allows.">
      <div ref={box}>
        {rows.length === 0 ? <Absent why="no brick of these steps states its bytes and its flops" /> : (
          <>
            {roofs.length === 0 && <p class="absent">No roof is drawn: no peaks in the recording; run <code>plumb selftest --peaks</code> where it is recorded.</p>}
            {width > 0 && <div class="chart">
              <svg width={wide} height={height} role="img" aria-label={`${rows.length} bricks by intensity and rate; the table below has them`}>
                {decades(x0, x1).map((p) => <g key={p}><line x1={px(10 ** p)} x2={px(10 ** p)} y1={top} y2={height - bottom} stroke="var(--line)" /><text class="dim" x={px(10 ** p)} y={height - bottom + 16} text-anchor="middle">{word(p)}</text></g>)}
                {decades(y0, y1).map((p) => <g key={p}><line x1={left} x2={wide - right} y1={py(10 ** p)} y2={py(10 ** p)} stroke="var(--line)" /><text class="dim" x={left - 6} y={py(10 ** p) + 4} text-anchor="end">{word(p)}</text></g>)}
                <text class="dim" x={wide - right} y={height - 6} text-anchor="end">flops per byte</text>
                <text class="dim" x={left + 4} y={top + 10}>TFLOP/s</text>
                {roofs.map(({ place, read, most }) => <g key={place}>
                  <path data-read={read} data-most={most} fill="none" stroke="var(--ink)" stroke-width="1.5" d={`M${px(Math.max(10 ** x0, (10 ** y0 * 1e3) / read))} ${py(Math.max((10 ** x0 * read) / 1e3, 10 ** y0))}L${px((most * 1e3) / read)} ${py(most)}H${wide - right}`} />
                  <text x={wide - right} y={py(most) - 6} text-anchor="end">{visible(place, 20)}</text>
                </g>)}
                {rows.map((row, i) => <path key={i} transform={`translate(${px(x(row))} ${py(y(row))})`} d={signs[row.roofline.bottleneck] ?? signs["unknown"]} fill={row.roofline.bottleneck === "unknown" || row.roofline.bottleneck === "latency" ? "none" : "var(--c-attention)"} stroke="var(--c-attention)" stroke-width="1.5"><title>{visible(row.name, 60)}</title></path>)}
                {labelled.map((row, i) => {
                  const label = labelOf(row);
                  return label && <text key={i} x={label.x} y={label.y} text-anchor={label.end ? "end" : "start"}>{label.text}</text>;
                })}
              </svg>
            </div>}
            <ul class="legend">{Object.keys(signs).filter((sign) => rows.some((row) => row.roofline.bottleneck === sign)).map((sign) => <li key={sign}><svg width="16" height="14" viewBox="-8 -7 16 14" aria-hidden="true"><path d={signs[sign]} fill={sign === "unknown" || sign === "latency" ? "none" : "var(--c-attention)"} stroke="var(--c-attention)" stroke-width="1.5" /></svg> {sign}</li>)}</ul>
            <Twin label="The same as a table">{() => <Table label="Bricks against the roof" rows={rows} columns={[
              { head: "brick", left: true, cell: (row) => <Name of={row.name} />, key: (row) => row.name },
              { head: "flops/byte", cell: (row) => <Num of={row.roofline.intensity} />, key: x },
              { head: "TFLOP/s", cell: (row) => <Num of={row.teraflops} decimals={4} />, key: y },
              { head: "% roof", cell: (row) => <Num of={row.roofline.share} unit={0.01} decimals={1} />, key: (row) => valueOf(row.roofline.share) },
              { head: "kept back by", left: true, cell: (row) => row.roofline.bottleneck },
              { head: "why", left: true, cell: (row) => <Name of={row.roofline.reason} most={200} /> },
            ]} />}</Twin>
          </>
        )}
      </div>
    </Section>
  );
}
