// SPDX-License-Identifier: Apache-2.0
// One step on a canvas: a lane for each thread and queue, what waited for what, and the critical path.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Part, Report, Timeline as TimelineData, TimelineStep } from "./data";
import { Absent, Choice, Name, Num, Section, Table, Twin, colour, usePrinted, useWidth } from "./parts";
import { fixed, grouped, percent, ticks, time, visible } from "./text";

type Hue = "attention" | "ffn" | "other" | "edge" | "move";
const hues: Record<string, Hue> = { attention: "attention", ffn: "ffn", moe: "ffn", embedding: "edge", output: "edge", cache: "move", collective: "move", transfer: "move" };
const hueWords: Record<Hue, string> = { attention: "attention", ffn: "feed-forward, experts", edge: "embedding, output", move: "cache, transfer, collective", other: "norms and others" };
const kinds: Record<string, string> = { s: "step", l: "layer", b: "brick", k: "kernel", t: "transfer", o: "task" };

interface Span { name: number; lane: number; layer: number; begin: number; length: number; holds: boolean; kind: string; row: number; path: boolean }
interface Lane { name: string; device: boolean; busy: number; top: number; rows: number }
interface Model { step: TimelineStep; spans: Span[]; lanes: Lane[]; height: number; total: number; arrowsOf: Map<number, number[]> }

const rowHeight = 20, laneGap = 10, laneHead = 18, ruler = 24;

/** Spans with their row: one that lies in another stands below it. */
function modelOf(step: TimelineStep): Model {
  const path = new Set(step.path);
  const spans: Span[] = [];
  const open: number[][] = step.lanes.map(() => []); // ends of the spans around, by row
  let begin = 0, total = step.span_ns;
  for (let i = 0; i < step.spans.names.length; ++i) {
    begin += step.spans.begins_ns[i]!;
    const lane = step.spans.lanes[i]!, length = step.spans.durations_ns[i]!, kind = step.spans.kinds[i]!;
    const ends = open[lane]!;
    let row = 0;
    while (row < ends.length && ends[row]! > begin) ++row;
    ends.length = row;
    ends.push(begin + Math.max(length, 1));
    total = Math.max(total, begin + length);
    spans.push({ name: step.spans.names[i]!, lane, layer: step.spans.layers[i]!, begin, length, holds: kind !== kind.toLowerCase(), kind: kind.toLowerCase(), row: Math.min(row, 5), path: path.has(i) });
  }
  let top = ruler;
  const lanes = step.lanes.map((lane, i) => {
    const rows = spans.reduce((most, span) => (span.lane === i ? Math.max(most, span.row + 1) : most), 0);
    const made = { name: lane.name, device: lane.device, busy: lane.busy_ns, top: top + laneHead, rows };
    if (rows > 0) top += laneHead + rows * rowHeight + laneGap;
    return made;
  });
  const arrowsOf = new Map<number, number[]>();
  step.from.forEach((from, i) => {
    for (const end of [from, step.to[i]!]) arrowsOf.set(end, [...(arrowsOf.get(end) ?? []), i]);
  });
  return { step, spans, lanes, height: top, total, arrowsOf };
}

interface View { from: number; to: number }

function draw(canvas: HTMLCanvasElement, model: Model, view: View, width: number, hueOf: (name: number) => Hue, chosen: number | null, matches: Set<number> | null): void {
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = model.height * ratio;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const ink = colour("ink"), faint = colour("faint"), line = colour("line"), bg = colour("bg"), on = colour("on"), accent = colour("accent"), warn = colour("warn"), alike = colour("alike"), firm = colour("firm");
  const fills: Record<Hue, string> = { attention: colour("c-attention"), ffn: colour("c-ffn"), other: colour("c-other"), edge: colour("c-edge"), move: colour("c-move") };
  pen.scale(ratio, ratio);
  pen.fillStyle = bg;
  pen.fillRect(0, 0, width, model.height);
  pen.font = "12px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif";
  pen.textBaseline = "middle";
  const scale = width / (view.to - view.from);
  const x = (ns: number) => (ns - view.from) * scale;
  for (const at of ticks(view.from, view.to, width / 110)) {
    pen.fillStyle = line;
    pen.fillRect(Math.round(x(at)), 0, 1, model.height);
    pen.fillStyle = faint;
    pen.fillText(at === 0 ? "0" : time(at), Math.round(x(at)) + 4, 9);
  }
  for (const lane of model.lanes) {
    if (lane.rows === 0) continue;
    pen.fillStyle = ink;
    pen.fillText(`${visible(lane.name, 60)}${lane.device ? " (device)" : ""}  ${percent(lane.busy / model.total)} busy`, 2, lane.top - 8);
  }
  const last = new Map<number, number>(); // by lane and row: the pixel that is already drawn
  model.spans.forEach((span, i) => {
    const lane = model.lanes[span.lane]!;
    const from = x(span.begin), to = x(span.begin + span.length);
    if (to < 0 || from > width) return;
    const key = span.lane * 8 + span.row;
    if (to - from < 1 && last.get(key) === Math.floor(from) && i !== chosen && !matches?.has(i)) return;
    last.set(key, Math.floor(to));
    const left = Math.max(from, -2), wide = Math.max(Math.min(to, width + 2) - left, 1), y = lane.top + span.row * rowHeight;
    const unnamed = model.step.names[span.name] === "unattributed";
    pen.globalAlpha = matches && !matches.has(i) ? 0.25 : 1;
    pen.fillStyle = unnamed ? bg : span.holds ? alike : fills[hueOf(span.name)];
    pen.fillRect(left, y, Math.max(wide - (wide > 3 ? 1 : 0), 1), rowHeight - 3);
    if ((unnamed || span.holds) && wide > 3) {
      pen.strokeStyle = firm;
      pen.strokeRect(left + 0.5, y + 0.5, wide - 2, rowHeight - 4);
    }
    if (span.path && !span.holds) {
      pen.fillStyle = warn;
      pen.fillRect(left, y + rowHeight - 3, Math.max(wide - (wide > 3 ? 1 : 0), 1), 3);
    }
    if (wide > (span.kind === "l" ? 22 : 34)) {
      const name = visible(model.step.names[span.name] ?? "", 60);
      const text = span.layer >= 0 && span.kind === "l" && wide < 60 ? String(span.layer) : name;
      pen.save();
      pen.beginPath();
      pen.rect(left, y, wide - 4, rowHeight);
      pen.clip();
      pen.fillStyle = unnamed || span.holds ? ink : on;
      pen.fillText(text, Math.max(left, 0) + 4, y + rowHeight / 2 - 1);
      pen.restore();
    }
    pen.globalAlpha = 1;
    if (i === chosen) {
      pen.strokeStyle = accent;
      pen.lineWidth = 3;
      pen.strokeRect(left - 1, y - 1.5, wide + 1, rowHeight);
      pen.lineWidth = 1;
    }
  });
  const shown: number[] = [];
  model.step.from.forEach((from, i) => {
    const a = model.spans[from]!, b = model.spans[model.step.to[i]!]!;
    if (x(b.begin) >= 0 && x(a.begin + a.length) <= width && x(a.begin) <= width) shown.push(i);
  });
  const arrows = new Set(shown.length <= 150 ? shown : shown.filter((i) => model.spans[model.step.from[i]!]!.path && model.spans[model.step.to[i]!]!.path).slice(0, 300));
  if (chosen !== null) for (const i of model.arrowsOf.get(chosen) ?? []) arrows.add(i);
  for (const i of arrows) {
    const a = model.spans[model.step.from[i]!]!, b = model.spans[model.step.to[i]!]!;
    const la = model.lanes[a.lane]!, lb = model.lanes[b.lane]!;
    const down = lb.top > la.top;
    const x1 = x(Math.min(a.begin + a.length, b.begin)), x2 = x(b.begin);
    const y1 = la.top + a.row * rowHeight + (down ? rowHeight - 3 : 0), y2 = lb.top + b.row * rowHeight + (down ? 0 : rowHeight - 3);
    const mine = chosen !== null && (model.step.from[i] === chosen || model.step.to[i] === chosen);
    pen.strokeStyle = pen.fillStyle = mine ? accent : a.path && b.path ? warn : faint;
    pen.lineWidth = mine ? 2 : 1;
    pen.globalAlpha = mine ? 1 : 0.7;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
    const angle = Math.atan2(y2 - y1, x2 - x1);
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - 6 * Math.cos(angle - 0.4), y2 - 6 * Math.sin(angle - 0.4));
    pen.lineTo(x2 - 6 * Math.cos(angle + 0.4), y2 - 6 * Math.sin(angle + 0.4));
    pen.fill();
    pen.lineWidth = 1;
    pen.globalAlpha = 1;
  }
}

function Canvas({ model, report }: { model: Model; report: Report }) {
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [view, setView] = useState<View>({ from: 0, to: Math.max(model.total, 1) });
  const [chosen, setChosen] = useState<number | null>(null);
  const [search, setSearch] = useState("");
  const drag = useRef<{ x: number; view: View; moved: boolean } | null>(null);
  const hueOf = useMemo(() => {
    const categories = new Map(report.bricks.map((row) => [row.name, hues[row.category] ?? "other"]));
    const made = model.step.names.map((name) => categories.get(name) ?? "other");
    return (name: number) => made[name] ?? "other";
  }, [model, report]);
  const found = useMemo(() => {
    const wanted = search.trim().toLowerCase();
    if (wanted === "") return null;
    const names = new Set(model.step.names.flatMap((name, i) => (name.toLowerCase().includes(wanted) ? [i] : [])));
    return model.spans.flatMap((span, i) => (names.has(span.name) ? [i] : []));
  }, [search, model]);
  const matches = useMemo(() => (found ? new Set(found) : null), [found]);
  const redraw = () => {
    if (canvas.current && width > 0) draw(canvas.current, model, view, width, hueOf, chosen, matches);
  };
  usePrinted(redraw);
  useEffect(redraw, [model, view, width, hueOf, chosen, matches]);

  const clamp = (from: number, to: number): View => {
    const length = Math.min(Math.max(to - from, 100), model.total);
    const at = Math.min(Math.max(from, 0), model.total - length);
    return { from: at, to: at + length };
  };
  const zoom = (by: number, around: number) => setView((v) => clamp(around - (around - v.from) * by, around + (v.to - around) * by));
  const pan = (by: number) => setView((v) => clamp(v.from + by * (v.to - v.from), v.to + by * (v.to - v.from)));
  const select = (index: number) => {
    const span = model.spans[index];
    if (!span) return;
    setChosen(index);
    setView((v) => {
      const inside = span.begin >= v.from && span.begin + span.length <= v.to;
      const length = Math.min(v.to - v.from, Math.max(span.length * 12, (v.to - v.from) / 50));
      return inside && (span.length / (v.to - v.from)) * width > 6 ? v : clamp(span.begin + span.length / 2 - length / 2, span.begin + span.length / 2 + length / 2);
    });
  };
  /** The next span in time: of those that match, or of the same lane and row. */
  const next = (by: number) => {
    if (found) {
      const at = chosen === null ? -1 : found.findIndex((i) => i >= chosen);
      const exact = chosen !== null && found[at] === chosen;
      select(found[((exact || by < 0 ? at + by : Math.max(at, 0)) + found.length) % found.length] ?? -1);
      return;
    }
    const from = chosen === null ? undefined : model.spans[chosen];
    for (let i = (chosen ?? -1) + by; i >= 0 && i < model.spans.length; i += by) {
      const span = model.spans[i]!;
      if (!from ? !span.holds : span.lane === from.lane && span.row === from.row) return select(i);
    }
  };
  const hit = (event: MouseEvent): number | null => {
    const area = canvas.current!.getBoundingClientRect();
    const at = view.from + ((event.clientX - area.left) / width) * (view.to - view.from), y = event.clientY - area.top;
    const slack = (2 / width) * (view.to - view.from);
    let best: number | null = null;
    model.spans.forEach((span, i) => {
      const top = model.lanes[span.lane]!.top + span.row * rowHeight;
      if (y >= top && y < top + rowHeight && at >= span.begin - slack && at <= span.begin + span.length + slack) best = i;
    });
    return best;
  };
  const key = (event: KeyboardEvent) => {
    const middle = (view.from + view.to) / 2;
    const act: Record<string, () => void> = {
      ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), "+": () => zoom(0.6, middle), "=": () => zoom(0.6, middle), "-": () => zoom(1 / 0.6, middle),
      "0": () => setView({ from: 0, to: model.total }), Home: () => setView((v) => clamp(0, v.to - v.from)), End: () => setView((v) => clamp(model.total, model.total + v.to - v.from)),
      n: () => next(1), p: () => next(-1), Enter: () => next(1),
    };
    const done = act[event.key];
    if (!done || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    done();
  };
  // Not passive: the wheel zooms with Ctrl only, so that the page can be scrolled past.
  useEffect(() => {
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const area = canvas.current!.getBoundingClientRect();
      if (event.shiftKey) pan((event.deltaY || event.deltaX) / 1000);
      else zoom(Math.exp(event.deltaY / 300), view.from + ((event.clientX - area.left) / width) * (view.to - view.from));
    };
    const on = canvas.current;
    on?.addEventListener("wheel", wheel, { passive: false });
    return () => on?.removeEventListener("wheel", wheel);
  }, [view, width]);

  const span = chosen === null ? undefined : model.spans[chosen];
  return (
    <div ref={box}>
      <div class="row">
        <label>Search <input type="search" value={search} onInput={(event) => setSearch((event.target as HTMLInputElement).value)} onKeyDown={(event) => { if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); } }} /></label>
        {found && <span class="faint" role="status">{grouped(found.length)} found</span>}
        <div class="tools">
          <button type="button" onClick={() => zoom(0.6, (view.from + view.to) / 2)}>Zoom in</button>
          <button type="button" onClick={() => zoom(1 / 0.6, (view.from + view.to) / 2)}>Zoom out</button>
          <button type="button" onClick={() => setView({ from: 0, to: model.total })}>All</button>
        </div>
      </div>
      <div class="chart" tabIndex={0} role="group" aria-label="Timeline of the step; arrows move, plus and minus zoom, n and p go from span to span" onKeyDown={key}>
        <canvas ref={canvas} role="img" aria-label={`${model.spans.length} spans on ${model.lanes.length} lanes; the tables below have them`} style={{ width: `${width}px`, height: `${model.height}px`, touchAction: "pan-y" }}
          onPointerDown={(event) => { drag.current = { x: event.clientX, view, moved: false }; (event.currentTarget as Element).setPointerCapture(event.pointerId); }}
          onPointerMove={(event) => {
            const held = drag.current;
            if (!held) return;
            const by = ((held.x - event.clientX) / width) * (held.view.to - held.view.from);
            held.moved = held.moved || Math.abs(held.x - event.clientX) > 3;
            if (held.moved) setView(clamp(held.view.from + by, held.view.to + by));
          }}
          onPointerUp={(event) => { if (drag.current && !drag.current.moved) setChosen(hit(event)); drag.current = null; }}
          onDblClick={(event) => { const i = hit(event); const one = i === null ? undefined : model.spans[i]; if (one) setView(clamp(one.begin - one.length * 0.1, one.begin + one.length * 1.1)); }} />
      </div>
      <p class="readout" aria-live="polite">{span
        ? <><b><Name of={model.step.names[span.name] ?? ""} /></b> {kinds[span.kind]}{span.layer >= 0 && `, layer ${span.layer}`} on <Name of={model.lanes[span.lane]?.name ?? ""} />: {time(span.length)}, from {time(span.begin)}{span.path && !span.holds && ", on the critical path"}</>
        : <span class="faint">Click a span, or press <kbd>n</kbd>.</span>}</p>
      <ul class="legend">
        {(Object.keys(hueWords) as Hue[]).filter((hue) => model.step.names.some((name, i) => hueOf(i) === hue && name !== "unattributed")).map((hue) => <li key={hue}><svg class="swatch" viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" class={`fill-${hue}`} /></svg>{hueWords[hue]}</li>)}
        <li><svg class="swatch" viewBox="0 0 12 12" aria-hidden="true"><rect width="12" height="12" fill="var(--bg)" /></svg>unattributed</li>
        <li><svg width="14" height="12" aria-hidden="true"><rect y="7" width="12" height="4" fill="var(--warn)" /></svg> underlined: on the critical path</li>
      </ul>
      <p class="keys"><kbd>&larr;</kbd> <kbd>&rarr;</kbd> move, <kbd>+</kbd> <kbd>-</kbd> zoom, <kbd>0</kbd> all, <kbd>n</kbd> <kbd>p</kbd> next and previous span; drag, Ctrl and wheel, double-click with the mouse.</p>
    </div>
  );
}

const choices: Record<string, string> = { median: "median", slowest: "slowest", asked: "asked for" };

export interface Asked { step: number }

export function Timeline({ timeline, report, phase, asked }: { timeline: Part<TimelineData>; report: Report; phase: string; asked: Asked | null }) {
  const [at, setAt] = useState(0);
  const all = "found" in timeline ? timeline.found.steps : [];
  const steps = all.some((one) => one.phase === phase) ? all.filter((one) => one.phase === phase) : all;
  const slowest = steps.findIndex((one) => one.choice === "slowest");
  useEffect(() => setAt(Math.max(0, steps.findIndex((one) => one.step === asked?.step))), [asked, phase]);
  const one = steps[at];
  const model = useMemo(() => (one ? modelOf(one) : null), [one]);
  return (
    <Section id="timeline" title="One step">
      {!one || !model ? <Absent why={"absent" in timeline ? timeline.absent : "no step"} /> : (
        <>
          <div class="row">
            <Choice label="Step" options={steps.map((each, i) => ({ value: i, text: each.choice === "slowest" && i !== slowest ? `step ${each.step}` : `${choices[each.choice] ?? each.choice}: step ${each.step}` }))} value={at} onChange={setAt} />
            <span>{one.phase}, {time(one.span_ns)}; critical path {time(one.path_ns)}</span>
          </div>
          <Canvas key={one.step} model={model} report={report} />
          {one.left_out > 0 && <p class="faint">{grouped(one.left_out)} of the shortest spans are left out.</p>}
          {one.untimed > 0 && <p class="faint">{grouped(one.untimed)} parts ran that were not timed by themselves.</p>}
          {one.notes.map((note) => <p key={note}><b>note</b> <Name of={note} most={600} /></p>)}
          <Twin label="What to shorten, as a table">{() => <Table label="Parts of the step by time on the critical path" rows={one.rows} columns={[
            { head: "part", left: true, cell: (row) => <><Name of={row.name} />{row.device && " (device)"}</>, key: (row) => row.name },
            { head: "kind", left: true, cell: (row) => row.kind },
            { head: "count", cell: (row) => grouped(row.count), key: (row) => row.count },
            { head: "on path", cell: (row) => grouped(row.on_path), key: (row) => row.on_path },
            { head: "total us", cell: (row) => fixed(row.total_ns / 1e3, 1), key: (row) => row.total_ns },
            { head: "path us", cell: (row) => fixed(row.path_ns / 1e3, 1), key: (row) => row.path_ns },
            { head: "gain us", cell: (row) => <Num of={row.gain_ns} unit={1e3} decimals={1} /> },
            { head: "least slack us", cell: (row) => fixed(row.slack_ns / 1e3, 1), key: (row) => row.slack_ns },
          ]} />}</Twin>
          <Twin label="Every span, as a table">{() => <>
            {model.spans.length > 1000 && <p class="faint">The first 1,000; all are in the data.</p>}
            <Table label="Spans" rows={model.spans.slice(0, 1000)} columns={[
              { head: "name", left: true, cell: (each) => <Name of={one.names[each.name] ?? ""} /> },
              { head: "kind", left: true, cell: (each) => kinds[each.kind] },
              { head: "lane", left: true, cell: (each) => <Name of={model.lanes[each.lane]?.name ?? ""} /> },
              { head: "layer", cell: (each) => (each.layer >= 0 ? each.layer : "") },
              { head: "begin us", cell: (each) => fixed(each.begin / 1e3, 1), key: (each) => each.begin },
              { head: "us", cell: (each) => fixed(each.length / 1e3, 1), key: (each) => each.length },
              { head: "path", left: true, cell: (each) => (each.path && !each.holds ? "critical path" : "") },
            ]} /></>}</Twin>
        </>
      )}
    </Section>
  );
}
