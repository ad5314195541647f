// SPDX-License-Identifier: Apache-2.0
// The page: what one or several recordings say, the answer first.
import { type ComponentChildren, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Bricks } from "./bricks";
import { type Layers as LayerData, type Histogram, type PageData, type Part, type PhaseSummary, type Replays, type Report, type Run, type Steps as StepData, type Timeline as TimelineData, type Wall as WallData, part, phaseOrder, reasons } from "./data";
import { Compare, type Comparison } from "./compare";
import { Diverge, type Divergence } from "./diverge";
import { Findings, type FindingsData } from "./findings";
import { Graphs } from "./graphs";
import { Layers } from "./layers";
import { Absent, Choice, Name, Num, Section, Twin } from "./parts";
import { Ranks, type RanksFound } from "./ranks";
import { Requests, type RequestsData } from "./requests";
import { Roofline } from "./roofline";
import { Steps } from "./steps";
import { grouped, percent, time, visible } from "./text";
import { type Asked, Timeline } from "./timeline";
import { Wall } from "./wall";

const verdicts: Record<string, string> = { "no device": "Host only", host: "Host-bound", device: "Device-bound", undecided: "Undecided" };

const importKey = /^(import \d+|known by .+)$/;

/** What is to be said of the trace that the recording was made from. */
function Imported({ report }: { report: Report }) {
  const said = report.description.filter(({ key }) => key.startsWith("import "));
  return said.length === 0 ? null : <ul class="why">{said.map(({ key, value }) => <li key={key}><b>import</b> <Name of={value} most={600} /></li>)}</ul>;
}

function Summary({ report, phase, wall }: { report: Report; phase: PhaseSummary | undefined; wall: Part<WallData> }) {
  const account = "found" in wall ? wall.found.phases.find((one) => one.phase === phase?.phase) : undefined;
  const best = account?.gains.slice(1).sort((a, b) => b.at_most_ns - a.at_most_ns)[0] ?? account?.gains[0];
  const losses = report.losses.reduce((sum, loss) => sum + loss.count, 0);
  const period = phase?.period;
  const median = typeof period?.p50_ns === "number";
  return (
    <section id="answer" aria-labelledby="answer-h">
      <h2 id="answer-h" class="quiet">The answer</h2>
      {phase === undefined
        ? <p class="verdict">There is no time per token: <Name of={"absent" in wall ? wall.absent : "no step counts"} most={600} />. What was timed stands below.</p>
        : account
          ? <p class="verdict"><b>{verdicts[account.bound] ?? account.bound}.</b> <Name of={account.reason} most={1000} />
              {best && best.share >= 0.001 && best.share < 1 && <> Most to gain: <Name of={best.what} />, at most {percent(best.share)} of the time.</>}</p>
          : <p class="verdict">Where the wall clock went is not known.</p>}
      <dl class="facts">
        {phase && period && <>
          <div><dt>{phase.phase}</dt><dd data-fact="tokens_per_second"><Num of={phase.tokens_per_second} /> <small>tokens per second</small></dd></div>
          <div><dt>{median ? "median step" : "mean step"}</dt><dd data-fact="period"><Num of={median ? period.p50_ns : period.mean_ns} unit={1e6} /> ms
            <small>{typeof period.p90_ns === "number" ? <>p90 <Num of={period.p90_ns} unit={1e6} /> ms</> : `slowest ${time(period.max_ns)}`}</small></dd></div>
          <div><dt>steps counted</dt><dd data-fact="steps"><span class="num" data-v={phase.steps}>{grouped(phase.steps)}</span>
            <small>{phase.warmup_steps > 0 ? `${grouped(phase.warmup_steps)} warm-up apart` : "no warm-up apart"}</small></dd></div>
          <div><dt>coverage</dt><dd data-fact="coverage"><Num of={phase.wall.coverage} unit={0.01} decimals={1} suffix={" %"} /> <small>of {report.tracks.some((track) => track.device) ? "host busy" : "busy"} time is in a brick</small></dd></div>
          {phase.device && <div><dt>device coverage</dt><dd><Num of={phase.device.coverage_at_least} unit={0.01} decimals={1} suffix={" %"} /> <small>at least, of its busy time</small></dd></div>}
        </>}
        <div><dt>own cost</dt><dd data-fact="own_cost"><Num of={report.own_cost.wall_share} unit={0.01} decimals={2} suffix={" %"} /> <small>of the wall clock, measured</small></dd></div>
        <div><dt>lost</dt><dd data-fact="losses"><span class="num" data-v={losses}>{grouped(losses)}</span> <small>of {grouped(report.scopes)} scopes{report.unresolved > 0 ? `, ${grouped(report.unresolved)} without a time` : ""}</small></dd></div>
      </dl>
      {report.losses.length > 0 && <ul class="why">{report.losses.map((loss) => <li key={loss.reason}><b class="odd">lost</b> {grouped(loss.count)} <Name of={loss.reason} most={300} /></li>)}</ul>}
      <Imported report={report} />
      {report.notes.length > 0 && <ul class="why">{report.notes.map((note) => <li key={note}><b>note</b> <Name of={note} most={1000} /></li>)}</ul>}
    </section>
  );
}

function Unknown({ run, report }: { run: Run; report: Report }) {
  const all = reasons(run);
  const shown = 4;
  return (
    <Section id="unknown" title="What this report cannot know" lead="Every figure that is n/a, by its reason. A number is measured or it is absent.">
      {all.length === 0 ? <p>Nothing: every figure was measured.</p> : (
        <ul class="why">
          {all.slice(0, 200).map(({ why, alike, where }) => (
            <li key={why}><Name of={why} most={400} />{alike > 0 && `, and ${grouped(alike)} with other numbers`} <span class="faint">
              ({where.slice(0, shown).map((one, i) => <>{i > 0 && ", "}<Name of={one} most={60} /></>)}{where.length > shown && ` and ${grouped(where.length - shown)} more`})</span></li>
          ))}
        </ul>
      )}
      <p class="faint">Times come from {[...new Set(report.tracks.map((track) => track.source))].map((source, i) => <>{i > 0 && ", "}<Name of={source || "unknown"} /></>)}; clock: <Name of={report.clock.clock} />, {report.clock.pairs} clock pairs.</p>
    </Section>
  );
}

/** By the median of the calls; in a run too short for one by their mean. */
function layersOf(run: Run, phase: string): Part<LayerData> {
  const medians = part<LayerData>(run, "layers", (one) => {
    const rows = one.rows.filter((row) => row.phase === phase);
    return 2 * rows.filter((row) => typeof row.median === "number").length > rows.length;
  });
  return "found" in medians ? medians : part<LayerData>(run, "layers", (one) => one.metric === "mean");
}

function RunView({ run }: { run: Run }) {
  const found = part<Report>(run, "report");
  const report = "found" in found ? found.found : undefined;
  const phases = report ? phaseOrder.map((word) => report.phases.find((p) => p.phase === word)).filter((p): p is PhaseSummary => !!p && p.steps > 0) : [];
  const words = [...new Set([...phases.map((p) => p.phase), ...(report?.bricks ?? []).map((row) => row.phase)])];
  const [wanted, setPhase] = useState(words[0] ?? "none");
  const phase = words.includes(wanted) ? wanted : words[0] ?? "none";
  const [asked, setStep] = useState<Asked | null>(null);
  if (!report) return <Absent why={"absent" in found ? found.absent : ""} />;
  const wall = part<WallData>(run, "wall");
  const replays = part<Replays>(run, "replays");
  const graphs = "found" in replays && replays.found.graphs.length > 0 ? replays.found : undefined;
  const timelines = part<TimelineData>(run, "timeline");
  // A request may lead to a step of another phase than the one that is shown.
  const open = (step: number) => {
    const of = "found" in timelines ? timelines.found.steps.find((one) => one.step === step)?.phase : undefined;
    if (of !== undefined && words.includes(of)) setPhase(of);
    setStep({ step });
  };
  const asking = part<RequestsData>(run, "requests");
  const requests = "found" in asking && asking.found.requests > 0 ? asking.found : undefined;
  const worth = part<FindingsData>(run, "findings");
  const findings = "found" in worth ? worth.found.runs[0]?.findings ?? [] : [];
  const about = report.description.filter(({ key }) => !importKey.test(key)).map(({ key, value }) => (/^[\d.,]+$/.test(value) ? `${value} ${key}` : value));
  const links: [string, string][] = [["answer", "Answer"], ["wall", "Wall clock"], ["bricks", "Bricks"], ["layers", "Layers"], ["steps", "Steps"], ["timeline", "One step"], ["roofline", "Roofline"]];
  if (findings.length > 0) links.splice(1, 0, ["findings", "Findings"]);
  if (requests) links.push(["requests", "Requests"]);
  if (graphs) links.push(["graphs", "Graphs"]);
  links.push(["unknown", "Cannot know"]);
  return (
    <>
      <nav aria-label="Sections"><ul>{links.map(([id, text]) => <li key={id}><a href={`#${id}`}>{text}</a></li>)}</ul></nav>
      <main id="main">
        <p class="about">{about.length > 0 ? about.map((text, i) => <>{i > 0 && " \u00b7 "}<Name of={text} most={300} /></>) : "The recording does not say what ran."}</p>
        {words.length > 1 && <div class="row"><span class="faint">Steps of</span><Choice label="Phase" options={words.map((word) => ({ value: word, text: word === "none" ? "no phase" : word }))} value={phase} onChange={setPhase} /></div>}
        <Summary report={report} phase={phases.find((p) => p.phase === phase)} wall={wall} />
        {findings.length > 0 && <Findings found={findings} />}
        <Wall wall={wall} phase={phase} />
        <Bricks report={report} phase={phase} histogram={part<Histogram>(run, "histogram")} />
        <Layers layers={layersOf(run, phase)} phase={phase} />
        <Steps steps={part<StepData>(run, "steps")} phase={phase} timeline={timelines} onOpen={open} />
        <Timeline timeline={timelines} report={report} phase={phase} asked={asked} />
        <Roofline report={report} phase={phase} />
        {requests && <Requests found={requests} kept={"found" in timelines ? timelines.found.steps.map((one) => one.step) : []} onOpen={open} />}
        {graphs && <Graphs replays={graphs} />}
        <Unknown run={run} report={report} />
      </main>
    </>
  );
}

/** Answers about several recordings that have a page of their own, by the name in their schema. */
const answers: Record<string, { title: string; view: (found: never) => ComponentChildren }> = {
  compare: { title: "What changed between runs", view: (found: Comparison) => <Compare comparison={found} /> },
  diverge: { title: "Where two runs part", view: (found: Divergence) => <Diverge found={found} /> },
  ranks: { title: "Who waited for whom", view: (found: RanksFound) => <Ranks found={found} /> },
};

type Theme = "system" | "light" | "dark";
const wantsDark = matchMedia("(prefers-color-scheme: dark)");

const root = document.documentElement;
let onScreen = "";
addEventListener("beforeprint", () => { onScreen = root.dataset["theme"] ?? ""; root.dataset["theme"] = "light"; });
addEventListener("afterprint", () => { root.dataset["theme"] = onScreen; });

function save(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function App({ data, text }: { data: PageData; text: string }) {
  const [theme, setTheme] = useState<Theme>("system");
  const [at, setAt] = useState(0);
  const [, again] = useState(0);
  useEffect(() => {
    const follow = () => again((n) => n + 1);
    wantsDark.addEventListener("change", follow);
    return () => wantsDark.removeEventListener("change", follow);
  }, []);
  const dark = theme === "dark" || (theme === "system" && wantsDark.matches);
  root.dataset["theme"] = dark ? "dark" : "light";
  const runs = data.runs ?? [];
  const run = runs[at], found = data.found?.[0];
  const answer = answers[found?.schema?.split(/[./]/)[1] ?? ""];
  const title = run?.file ?? answer?.title ?? "";
  useEffect(() => { document.title = `${visible(title, 80)} \u00b7 Plumbline`; }, [title]);
  if (!run && !answer) return <Absent why="this page holds nothing that it knows" />;
  const next: Record<Theme, Theme> = { system: dark ? "light" : "dark", light: "dark", dark: "light" };
  return (
    <>
      <a class="skip" href="#main">To the figures</a>
      <header>
        <h1><Name of={title} most={120} /></h1>
        {runs.length > 1 && <Choice label="Recording" options={runs.map((one, i) => ({ value: i, text: one.file }))} value={at} onChange={setAt} />}
        <div class="tools">
          <button type="button" onClick={() => setTheme(next[theme])}>{dark ? "Light" : "Dark"}</button>
          <button type="button" onClick={() => save(text, "page.json")}>Save the data</button>
        </div>
      </header>
      <div key={`${at} ${dark}`}>{run ? <RunView run={run} /> : answer?.view(found as never)}</div>
      <footer class="faint"><p>Made by plumb {visible(data.version)} page. The file holds all it shows and asks for nothing.</p></footer>
    </>
  );
}

const text = document.getElementById("data")?.textContent ?? "";
const app = document.getElementById("app");
if (app) {
  app.textContent = "";
  // Keys of graphs have 64 bits, more than a number here holds: they are words.
  const words = text.replace(/"graph":(\d{16,})/g, '"graph":"$1"');
  render(<App data={JSON.parse(words) as PageData} text={text} />, app);
}
