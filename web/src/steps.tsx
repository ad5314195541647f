// SPDX-License-Identifier: Apache-2.0
// How long each step took, in the order of time.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { type Part, type Steps as StepData, type Timeline as TimelineData } from "./data";
import { Absent, Num, Section, Table, Twin, colour, usePrinted, useWidth } from "./parts";
import { decimalsFor, fixed, grouped, time } from "./text";

const letters: Record<string, string> = { decode: "d", prefill: "p", mixed: "m", none: "n" };
const marks: Record<string, string> = { ".": "counted", w: "warm-up", s: "made different by sampling" };

/** The steps of a phase: the lists of the document without their deltas. */
export function stepsOf(steps: StepData, phase: string) {
  const ids: number[] = [], ends: number[] = [], periods: number[] = [], mark: string[] = [];
  let id = 0, end = 0;
  for (let i = 0; i < steps.periods_ns.length; ++i) {
    id += steps.id_deltas[i]!;
    end += steps.gaps_ns[i]! + steps.periods_ns[i]!;
    if (steps.phases[i] !== letters[phase]) continue;
    ids.push(id);
    ends.push(end / 1e9);
    periods.push(steps.periods_ns[i]! / 1e6);
    mark.push(steps.marks[i]!);
  }
  return { ids, ends, periods, mark };
}

export function Steps({ steps, phase, timeline, onOpen }: { steps: Part<StepData>; phase: string; timeline: Part<TimelineData>; onOpen: (step: number) => void }) {
  const [box, width] = useWidth();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const [asked, setAsked] = useState<number | null>(null);
  const found = "found" in steps ? steps.found : undefined;
  const data = useMemo(() => (found ? stepsOf(found, phase) : null), [found, phase]);
  const slow = found?.slowest.filter((one) => one.phase === phase).slice(0, 10) ?? [];
  const kept = "found" in timeline ? timeline.found.steps.map((one) => one.step) : [];
  useEffect(() => {
    if (!place.current || !data || data.ids.length === 0 || width === 0) return;
    const slowest = new Set(slow.map((one) => one.step));
    const of = (wanted: (i: number) => boolean) => data.periods.map((value, i) => (wanted(i) ? value : null));
    const dense = data.ids.length > width;
    const ink = (name: string) => () => colour(name); // asked for with each drawing
    const grid = { stroke: ink("line"), width: 1 }, axis = { stroke: ink("faint"), grid, ticks: grid, font: "12px system-ui, sans-serif" };
    const points = (mark: string, size: number, filled: boolean) => ({ stroke: ink(mark), width: 1.5, paths: () => null, points: { show: true, size, stroke: ink(mark), fill: ink(filled ? mark : "bg") } });
    const seconds = (data.ends.at(-1) ?? 0) - (data.ends[0] ?? 0) >= 2, scale = seconds ? 1 : 1e3;
    const made = new uPlot({
      width, height: 230, cursor: { y: false, points: { size: 9 } }, legend: { show: false }, scales: { x: { time: false }, y: { range: (_, _low, high) => [0, (high || 1) * 1.08] } },
      axes: [{ ...axis, values: (_, at) => at.map((v) => `${Number((v * scale).toPrecision(6))} ${seconds ? "s" : "ms"}`) }, { ...axis, size: 64, values: (_, at) => at.map((v) => `${v} ms`) }],
      series: [{}, dense ? { stroke: ink("c-attention"), width: 1, points: { show: false } } : points("c-attention", 4, true), points("c-other", 5, false), points("warn", 9, false)],
      hooks: { setCursor: [(self) => setAt(self.cursor.idx ?? null)] },
    }, [data.ends, of((i) => data.mark[i] === "."), of((i) => data.mark[i] !== "."), of((i) => slowest.has(data.ids[i]!) && data.mark[i] === ".")] as uPlot.AlignedData, place.current);
    plot.current = made;
    return () => { made.destroy(); plot.current = null; };
  }, [data, width]);
  usePrinted(() => plot.current?.redraw());
  if (!found || !data) return <Section id="steps" title="Steps over time"><Absent why={"absent" in steps ? steps.absent : ""} /></Section>;
  const go = (index: number) => {
    const self = plot.current;
    const i = Math.max(0, Math.min(data.ids.length - 1, index));
    if (self) self.setCursor({ left: self.valToPos(data.ends[i]!, "x"), top: 10 });
    setAt(i);
  };
  const key = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -100, PageDown: 100 };
    if (by[event.key]) go((at ?? -1) + by[event.key]!);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(data.ids.length - 1);
    else if (event.key === "Enter" && at !== null) open(data.ids[at]!);
    else return;
    event.preventDefault();
  };
  const open = (step: number) => {
    setAsked(step);
    if (!kept.includes(step)) return;
    onOpen(step);
    document.getElementById("timeline")?.scrollIntoView();
  };
  const words = at !== null && data.ids[at] !== undefined
    ? `step ${data.ids[at]}: ${fixed(data.periods[at]!, decimalsFor(data.periods[at]!, 4))} ms, ends at ${fixed(data.ends[at]!, 3)} s, ${marks[data.mark[at]!]}${asked === data.ids[at] && !kept.includes(asked) ? `; its timeline is not in this page: plumb timeline RECORDING --step ${asked}` : ""}` : "";
  return (
    <Section id="steps" title="Steps over time" lead={<>From the end of one step to the end of the next; {grouped(found.steps)} in the recording.{found.every > 1 && ` Of ${found.every} that follow each other the longest is shown.`}</>}>
      <div ref={box}>
        {data.ids.length === 0 ? <Absent why="no step of this phase" /> : (
          <>
            {data.ids.length === 1 ? <p>One step of {fixed(data.periods[0]!, decimalsFor(data.periods[0]!))} ms.</p> : <><div class="chart" tabIndex={0} role="group" aria-label="Steps over time; arrow keys move from step to step, Enter opens a timeline" onKeyDown={key}
              onClick={() => at !== null && data.ids[at] !== undefined && open(data.ids[at]!)} ref={place} />
            <ul class="legend"><li><svg class="swatch" viewBox="0 0 12 12"><rect width="12" height="12" class="fill-attention" /></svg>counted</li>
              {data.mark.some((mark) => mark !== ".") && <li><svg width="14" height="12" aria-hidden="true"><circle cx="6" cy="6" r="3.5" fill="none" stroke="var(--c-other)" stroke-width="1.5" /></svg> warm-up or sampled</li>}
              <li><svg width="16" height="14" aria-hidden="true"><circle cx="7" cy="7" r="5" fill="none" stroke="var(--warn)" stroke-width="1.5" /></svg> among the slowest</li></ul>
            <p class="readout" aria-live="polite">{words || <span class="faint">Point at a step, or use the arrow keys. Drag to zoom, double-click to see all again.</span>}</p></>}
            {slow.length > 0 && <><h3>The slowest</h3>
              <Table label="The slowest steps" rows={slow} columns={[
                { head: "step", cell: (one) => kept.includes(one.step) ? <a href="#timeline" onClick={() => onOpen(one.step)}>{one.step}</a> : one.step, key: (one) => one.step },
                { head: "at", cell: (one) => time(one.begin_ns), key: (one) => one.begin_ns },
                { head: "period ms", cell: (one) => <Num of={one.period_ns} unit={1e6} decimals={3} />, key: (one) => one.period_ns },
                { head: "tokens", cell: (one) => one.tokens || "-", key: (one) => one.tokens ?? 0 },
                { head: "x median", cell: (one) => <Num of={one.times_median} decimals={2} /> },
              ]} /></>}
            <Twin label="Every step as a table">{() => <>
              {data.ids.length > 2000 && <p class="faint">The first 2,000; all are in the data.</p>}
              <Table label="Steps" rows={data.ids.slice(0, 2000).map((id, i) => ({ id, i }))} columns={[
                { head: "step", cell: (one) => one.id },
                { head: "ends at s", cell: (one) => fixed(data.ends[one.i]!, 3) },
                { head: "period ms", cell: (one) => fixed(data.periods[one.i]!, 3), key: (one) => data.periods[one.i] },
                { head: "mark", left: true, cell: (one) => marks[data.mark[one.i]!] },
              ]} /></>}</Twin>
          </>
        )}
      </div>
    </Section>
  );
}
