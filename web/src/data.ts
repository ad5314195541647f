// SPDX-License-Identifier: Apache-2.0
// The documents that the page was made from, as docs/reference/report_schema.md has them; only what is shown is named here.

/** A number that was measured, or why it was not. */
export type Figure = number | { absent: string };
export const valueOf = (figure: Figure | undefined): number | undefined => (typeof figure === "number" ? figure : undefined);
export const reasonOf = (figure: Figure | undefined): string =>
  typeof figure === "object" && figure !== null ? figure.absent : "not in this recording";

export interface Distribution {
  count: number; total_ns: number; self_ns: number; min_ns: number; max_ns: number; mean_ns: number;
  p50_ns: Figure; p90_ns: Figure; p99_ns: Figure; p999_ns: Figure;
}
export interface Roofline {
  bytes_per_step: Figure; intensity: Figure; share: Figure; memory_share: Figure; compute_share: Figure;
  fits_cache: boolean; bottleneck: string; reason: string;
}
export interface Row {
  phase: string; name: string; category: string; time: Distribution; calls_per_step: number; sum_per_step_ns: number;
  wall_share: Figure; gigabytes_per_second: Figure; teraflops: Figure; source: string; lap: boolean; parent: boolean;
  roofline: Roofline; barrier_wait_share: Figure; device?: { basis: string; basis_steps: number };
}
export interface WallAccount {
  period_ns: number; busy_ns: number; idle_ns: number; union_ns: number; overlap_ns: number; unattributed_ns: number;
  lap_union_ns: number; coverage: Figure;
}
export interface PhaseSummary {
  phase: string; steps: number; warmup_steps: number; tokens: number; tokens_per_second: Figure; period: Distribution;
  span: Distribution; wall: WallAccount; sampled_steps?: number;
  device?: { coverage_at_least: Figure; busy_per_step_ns: Figure; in_graph_busy_at_most_per_step_ns: Figure };
}
export interface Peaks { place: string; name: string; [figure: string]: Figure | string }
export interface Report {
  schema: string; description: { key: string; value: string }[]; phases: PhaseSummary[]; bricks: Row[];
  losses: { reason: string; count: number }[]; notes: string[]; scopes: number; unresolved: number;
  own_cost: { wall_share: Figure; scope_ns: Figure }; clock: { clock: string; residual_ns: Figure; pairs: number };
  peaks: Peaks[]; tracks: { name: string; device: boolean; source: string; scopes: number }[];
}
export interface WallIdle {
  total_ns: Figure; exposed_launch_ns: Figure; host_work_ns: Figure; unknown_ns: Figure; queued_ns: Figure;
  unnamed_ns: Figure; off_cpu_ns: Figure; for_device_ns: Figure; scopes: { name: string; self_ns: number }[];
}
export interface WallLane {
  name: string; device: boolean; tracks: number; steps: number; period_ns: number; busy_ns: Figure; bricks_ns: number;
  overlap_ns: number; unattributed_ns: Figure; coverage: Figure; idle: WallIdle;
}
export interface WallPhase {
  phase: string; steps: number; bound: string; reason: string; lanes: WallLane[]; period_ns: number;
  gains: { what: string; at_most_ns: number; share: number; tokens_per_second: Figure }[];
}
export interface Wall { phases: WallPhase[]; notes: string[] }
export interface LayerRow {
  phase: string; name: string; source: string; lap: boolean; parent: boolean; median: Figure; mad: Figure;
  cells: { layer: number; value: Figure }[];
}
export interface Odd { phase: string; name: string; layer: number; value: number; median: number; robust_z: number; source: string }
export interface Layers { metric: string; rows: LayerRow[]; odd: Odd[]; notes: string[] }
export interface Steps {
  steps: number; counted: number; every: number; id_deltas: number[]; gaps_ns: number[]; periods_ns: number[];
  phases: string; marks: string;
  slowest: { step: number; phase: string; begin_ns: number; period_ns: number; span_ns: number; tokens?: number; times_median: Figure }[];
  notes: string[];
}
export interface TimelineStep {
  choice: string; step: number; phase: string; span_ns: number; path_ns: number; names: string[];
  lanes: { name: string; device: boolean; spans: number; busy_ns: number }[];
  spans: { names: number[]; lanes: number[]; layers: number[]; begins_ns: number[]; durations_ns: number[]; kinds: string };
  path: number[]; from: number[]; to: number[]; left_out: number; untimed: number;
  rows: { name: string; kind: string; device: boolean; count: number; on_path: number; total_ns: number; path_ns: number; gain_ns: Figure; slack_ns: number }[];
  notes: string[];
}
export interface Timeline { steps: TimelineStep[] }
export interface Histogram {
  rows: { phase: string; name: string; source: string; lap: boolean; parent: boolean; count: number; begin_ns: number; end_ns: number; bins: number[]; above: number }[];
}
export interface ReplayRow {
  graph: number | string; captures: number; instantiations: number; updates: number; uploads: number; evictions: number; replays: number;
  instrumented: number; eager_steps: { reason: string; count: number }[]; rows_used: number; rows_padded: number;
  padding_wasted: Figure; node_checks: number; node_changes: { kernel: string; before: number; after: number }[];
  baked_in: number; plain_span_ns: Figure; device_ns: Figure; capture_ns: Figure; launch_ns: Figure; closure: Figure; twin: string; twin_reason: string;
}
export interface Replays { node_check: string; graphs: ReplayRow[]; notes: string[] }

type Document = { schema?: string; answer?: string; absent?: string };
export interface Run { file: string; found: { answers: Document[] } }
/** Recordings, or one answer about several. */
export interface PageData { schema: string; version: string; runs?: Run[]; found?: Document[] }

/** What one answer found, or why there is nothing. */
export type Part<T> = { found: T } | { absent: string };
export function part<T>(run: Run, answer: string, wanted: (found: T) => boolean = () => true): Part<T> {
  for (const document of run.found.answers) {
    if (document.schema?.startsWith(`plumb.${answer}/`) && wanted(document as T)) return { found: document as T };
    if (document.answer === answer) return { absent: document.absent ?? "" };
  }
  return { absent: "this page was made without it" };
}

/** Every reason for which a figure is absent, with where it is. */
export function reasons(run: Run): { why: string; alike: number; where: string[] }[] {
  const found = new Map<string, { whys: Set<string>; where: Set<string> }>(); // by the sentence without its numbers
  const walk = (value: unknown, label: string, field: string): void => {
    if (Array.isArray(value)) {
      value.forEach((item) => walk(item, label, field));
    } else if (typeof value === "object" && value !== null) {
      const object = value as Record<string, unknown>;
      if (object["answer"] === "requests") return; // of servers alone, which say so
      if (typeof object["absent"] === "string" && Object.keys(object).length <= 2) {
        const kind = object["absent"].replace(/p99\.9|p\d\d|\d+/g, "#");
        const one = found.get(kind) ?? { whys: new Set(), where: new Set() };
        one.whys.add(object["absent"]);
        one.where.add(typeof object["answer"] === "string" ? object["answer"] : [label, field].filter(Boolean).join(" "));
        found.set(kind, one);
        return;
      }
      const own = [object["phase"], object["name"]].filter((word) => typeof word === "string" && word !== "").join(" ");
      for (const [key, item] of Object.entries(object)) walk(item, own || label, /^(time|roofline|cells|value)$/.test(key) ? field : key.replace(/_(ns|share)$/, ""));
    }
  };
  walk(run.found.answers, "", "");
  return [...found.values()].map(({ whys, where }) => ({ why: [...whys][0] ?? "", alike: whys.size - 1, where: [...where] })).sort((a, b) => b.where.length - a.where.length);
}

export const phaseOrder = ["decode", "prefill", "mixed", "none"];
