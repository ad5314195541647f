// SPDX-License-Identifier: Apache-2.0
// The page in a real browser, offline. The last line reads "N passed, N failed".
// usage: page_test.mjs PLUMB MAKE_RECORDING CHROMIUM [WORD]: only tests whose name holds the word
// PLUMB_NEW_SHOTS=1 makes the screenshots of tests/web/shots, and docs/reference/page.png, anew.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "../../web/node_modules/playwright-core/index.mjs";

const [plumb, maker, browserPath, only = ""] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const golden = join(here, "../golden"), shots = join(here, "shots"), docs = join(here, "../../docs/reference");
const axe = readFileSync(join(here, "../../web/node_modules/axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "plumb-page-"));
const environment = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("PLUMB")));

const made = new Map();
/** A recording that the tests make. */
function recording(kind = "") {
  if (!made.has(kind)) {
    const path = join(folder, `run${kind}.plumb`);
    const program = kind === "graphs" ? join(dirname(maker), "plumb_make_graph_recording") : maker;
    const done = spawnSync(program, [path, ...(kind && kind !== "graphs" ? [kind] : [])], { env: environment });
    assert.ok(done.status === 0 || done.signal === "SIGKILL", String(done.stderr));
    made.set(kind, path);
  }
  return made.get(kind);
}
const run = (...words) => execFileSync(plumb, words, { env: environment, maxBuffer: 1 << 28, encoding: "utf8" });
const said = (...words) => JSON.parse(run(...words, "--json"));

function checkRecording(kind) {
  const path = join(folder, `checks-${kind}.plumb`);
  if (!made.has(path)) {
    execFileSync(join(dirname(maker), "plumb_make_check_recording"), [path, kind], { env: environment });
    made.set(path, path);
  }
  return path;
}
/** The page of an answer about several recordings, whatever it comes to. */
function answerPage(name, ...words) {
  const path = join(folder, `${name}.html`);
  const done = spawnSync(plumb, [name, ...words, "--page", path, "--json"], { env: environment, encoding: "utf8", maxBuffer: 1 << 28 });
  assert.notEqual(done.status, 2, done.stdout);
  return { path, said: JSON.parse(done.stdout) };
}
const compared = () => answerPage("compare", "--base", recording(), recording("tiles"), recording("nodes"), "--new", recording("crowd"), recording("hostile"), recording("long"));
/** Eight ranks, of which the sixth is late in the upper four of eight layers. */
function ofRanks() {
  const path = join(folder, "ranks");
  if (!made.has(path)) {
    mkdirSync(path);
    execFileSync(join(dirname(maker), "plumb_make_rank_recordings"), [path, "8", "20000", "800", "5"], { env: environment });
    made.set(path, path);
  }
  return answerPage("ranks", path);
}
const diverged = () => answerPage("diverge", checkRecording("clean"), checkRecording("fault"));

function pageOf(...recordings) {
  const path = join(folder, `${recordings.map((one) => one.replace(/\W/g, "_")).join("").slice(-80)}.html`);
  run("page", ...recordings, "-o", path);
  return path;
}

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });

/** Opens the file in a window of its own; nothing may be asked for but the file, and nothing said on the console. */
async function open(path, how, look) {
  const context = await browser.newContext({ offline: true, viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", ...how });
  const page = await context.newPage();
  const said = [], asked = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("dialog", (dialog) => { said.push(dialog.message()); void dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(blob|data):/.test(request.url())) asked.push(request.url()); });
  try {
    await page.goto(`file://${path}`);
    await page.waitForSelector("main, .absent");
    await look(page);
    assert.deepEqual(said, []);
    assert.deepEqual(asked, [`file://${path}`]);
  } finally {
    await context.close();
  }
}

/** Share of pixels that differ; 1 where the sizes do. */
async function difference(one, other) {
  const page = await browser.newPage();
  try {
    return await page.evaluate(async (images) => {
      const [a, b] = await Promise.all(images.map(async (image) => {
        const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${image}`)).blob());
        const pen = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
        pen.drawImage(bitmap, 0, 0);
        return pen.getImageData(0, 0, bitmap.width, bitmap.height);
      }));
      if (a.width !== b.width || a.height !== b.height) return 1;
      let differing = 0;
      for (let i = 0; i < a.data.length; i += 4) {
        differing += [0, 1, 2].some((k) => Math.abs(a.data[i + k] - b.data[i + k]) > 24) ? 1 : 0;
      }
      return (differing * 4) / a.data.length;
    }, [one, other].map((image) => image.toString("base64")));
  } finally {
    await page.close();
  }
}
/** Where headings, sections, tables and pictures stand. */
const boxesOf = (page) => page.locator("h1, h2, section, table, svg:not([width='0']), canvas").evaluateAll((all) => all.map((one) => {
  const box = one.getBoundingClientRect();
  return [one.tagName.toLowerCase(), Math.round(box.x), Math.round(box.y + scrollY), Math.round(box.width), Math.round(box.height)];
}));

/** Browsers change how they draw letters: where too many pixels differ, the boxes of the layout decide. */
async function looksAsBefore(name, page, picture = join(shots, `${name}.png`)) {
  const image = await page.screenshot({ animations: "disabled" }), boxes = await boxesOf(page);
  const layout = join(shots, `${name}.json`);
  if (process.env.PLUMB_NEW_SHOTS) {
    mkdirSync(shots, { recursive: true });
    writeFileSync(picture, image);
    writeFileSync(layout, `${JSON.stringify(boxes).replaceAll("],[", "],\n[")}\n`);
    return;
  }
  const share = await difference(image, readFileSync(picture));
  if (share <= 0.01) return;
  const before = JSON.parse(readFileSync(layout, "utf8"));
  assert.deepEqual(boxes.map(([tag]) => tag), before.map(([tag]) => tag), name);
  boxes.forEach((box, i) => box.slice(1).forEach((value, k) => assert.ok(Math.abs(value - before[i][k + 1]) <= 4 + 0.03 * before[i][k + 1],
    `${name}: ${(100 * share).toFixed(1)} % of pixels differ, and ${box} stood at ${before[i]}`)));
}

async function violations(page) {
  // The page's own policy lets no script in; the test's comes through the debugger, into the same world.
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
}

const tests = {
  async "figures are those of the text commands"() {
    const path = recording();
    const report = said("report", path);
    await open(pageOf(path), {}, async (page) => {
      const phase = report.phases.find((one) => one.phase === "decode");
      const fact = async (name) => {
        const shown = page.locator(`[data-fact=${name}]`).locator(".num, .na").first();
        return (await shown.innerText()) === "n/a" ? { absent: await shown.getAttribute("title") } : Number(await shown.getAttribute("data-v"));
      };
      assert.equal(await fact("tokens_per_second"), phase.tokens_per_second);
      assert.equal(await fact("period"), phase.period.p50_ns);
      assert.equal(await fact("steps"), phase.steps);
      assert.equal(await fact("coverage"), phase.wall.coverage);
      assert.deepEqual(await fact("own_cost"), report.own_cost.wall_share);
      assert.equal(await fact("losses"), report.losses.reduce((sum, one) => sum + one.count, 0));
      for (const word of ["prefill", "decode"]) {
        await page.getByRole("group", { name: "Phase" }).getByRole("button", { name: word }).click();
        const rows = report.bricks.filter((row) => row.phase === word);
        const shown = await page.locator("#bricks tbody tr").evaluateAll((all) => all.map((row) => [...row.querySelectorAll(".num,.na")].map((one) => one.dataset.v ?? null)));
        assert.equal(shown.length, rows.length + 2);
        const value = (figure) => (typeof figure === "number" ? String(figure) : null);
        rows.forEach((row, i) => assert.deepEqual(shown[i].slice(0, 5), [row.wall_share, row.sum_per_step_ns, row.calls_per_step, row.time.p50_ns, row.time.p90_ns].map(value), row.name));
      }
    });
  },
  async "the document is what the answers say, and can be saved"() {
    const path = recording();
    await open(pageOf(path), { acceptDownloads: true }, async (page) => {
      const data = JSON.parse(await page.locator("#data").textContent());
      const found = Object.fromEntries(data.runs[0].found.answers.map((one) => [one.schema + (one.metric ?? ""), one]));
      assert.deepEqual(found["plumb.report/2"], said("report", path));
      assert.deepEqual(found["plumb.wall/2"], said("wall", path));
      assert.deepEqual(found["plumb.layers/2p50"], said("layers", path));
      assert.deepEqual(found["plumb.layers/2mean"], said("layers", path, "--metric", "mean"));
      assert.deepEqual(found["plumb.steps/2"], said("steps", path, "--slowest", "40"));
      assert.deepEqual(found["plumb.timeline/1"], said("timeline", path, "--slowest", "5"));
      assert.deepEqual(found["plumb.histogram/1"], said("histogram", path));
      const download = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save the data" }).click();
      assert.deepEqual(JSON.parse(readFileSync(await (await download).path(), "utf8")), data);
    });
  },
  async "a comparison is a forest of intervals, a divergence a path through layers"() {
    const comparison = compared();
    await open(comparison.path, {}, async (page) => {
      const nameOf = (run) => ({ ...run, name: run.name.replace(/.*\//, "") });
      assert.deepEqual(JSON.parse(await page.locator("#data").textContent()).found, [{ ...comparison.said, base: comparison.said.base.map(nameOf), new: comparison.said.new.map(nameOf) }]);
      for (const phase of new Set(comparison.said.rows.map((row) => row.phase))) {
        const rows = comparison.said.rows.filter((row) => row.phase === phase && ["step", "brick"].includes(row.subject) && row.reason !== "less than 1 % of the step");
        const shown = await page.locator(`#changes-${phase} .forest`).first().locator("tbody tr").evaluateAll((all) => all.map((row) => ({ verdict: row.querySelector("b").textContent, change: row.querySelector("td:nth-child(3) .num")?.dataset.v ?? null })));
        assert.deepEqual(shown, rows.map((row) => {
          const { estimate } = row.by_own_change ? row.own_change : row.change;
          return { verdict: row.verdict, change: typeof estimate === "number" ? String(estimate) : null };
        }));
      }
    });
    const divergence = diverged();
    await open(divergence.path, {}, async (page) => {
      const { step, layer, brick } = divergence.said.first.place;
      assert.match(await page.locator(".verdict").innerText(), new RegExp(`^First divergence: step ${step} layer ${layer} brick ${brick}`));
      const shown = await page.locator("#amplification tbody .num").evaluateAll((all) => all.map((one) => Number(one.dataset.v)));
      assert.deepEqual(shown, divergence.said.layers.map((one) => one.distance.estimate));
    });
  },
  async "ranks have a map of waiting by layer, and the late one is named"() {
    const { path, said } = ofRanks();
    assert.deepEqual(said.late.map((one) => one.rank), [5]);
    await open(path, {}, async (page) => {
      const found = { ...said, ranks: said.ranks.map((row) => ({ ...row, file: row.file.replace(/.*\//, "") })) };
      assert.deepEqual(JSON.parse(await page.locator("#data").textContent()).found, [found]);
      assert.match(await page.locator(".verdict").innerText(), new RegExp(`^Rank 5 is late\\. It is the last to arrive, by ${said.late[0].margin_ns / 1e3} us or more, in ${said.late[0].last} of ${said.late[0].collectives} collectives`));
      assert.equal(await page.title(), "Who waited for whom \u00b7 Plumbline");
      const cells = said.ranks.reduce((sum, row) => sum + row.layers.length, 0);
      assert.equal(cells, 64);
      assert.equal(await page.locator("#map svg g g").count(), cells);
      await page.locator("#map summary").click();
      await page.locator("#map tbody tr").first().waitFor();
      const shown = await page.locator("#map tbody tr").evaluateAll((all) => all.map((row) => [...row.querySelectorAll(".num")].map((one) => ({ least_ns: Number(one.dataset.v), most_ns: Number(one.dataset.most) }))));
      assert.deepEqual(shown, said.ranks.map((row) => row.layers.map((cell) => cell.wait)));
      const last = await page.locator("#ranks tbody tr").evaluateAll((all) => all.map((row) => Number(row.querySelector("td:nth-child(8) .num").dataset.v)));
      assert.deepEqual(last, said.ranks.map((row) => row.last));
      const map = page.getByRole("group", { name: "Heat map of waiting" });
      await map.focus();
      for (const key of ["ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
      assert.match(await page.locator("#map .readout").innerText(), /^layer 1, rank 1: waits [\d.]+ to [\d.]+ us in a collective, [\d.]+ % (below|above) the median of all$/);
    });
  },
  async "requests have the times and waits of plumb requests, and a run without any says nothing of them"() {
    const asked = said("requests", recording("requests"));
    assert.equal(asked.requests, 2);
    await open(pageOf(recording("requests")), {}, async (page) => {
      const numbers = (table) => page.locator("#requests").getByRole("table", { name: table, exact: true }).locator("tbody tr").evaluateAll((all) => all.map((row) => [...row.querySelectorAll(".num,.na")].map((one) => (one.dataset.v === undefined ? null : Number(one.dataset.v)))));
      const figures = (...all) => all.map((one) => (typeof one === "number" ? one : null));
      assert.deepEqual(await numbers("How long requests took"), asked.times.map((one) => figures(one.mean_ns, one.p50_ns, one.p90_ns, one.p99_ns, one.max_ns)));
      assert.ok(asked.waits.length > 0);
      assert.deepEqual(await numbers("The longest waits"), asked.waits.map((one) => figures(one.wait_ns, ...(one.step_ns === undefined ? [] : [one.step_ns]), one.ttft_ns, one.tpot_ns)));
    });
    await open(pageOf(recording("requests")), {}, async (page) => { // it stands on decode
      const row = page.locator("#requests").getByRole("table", { name: "The longest waits", exact: true }).locator("tbody tr").filter({ hasText: "prefill" }).first();
      const link = row.locator("a");
      const step = await link.innerText();
      await link.click();
      assert.match(await page.locator("#timeline .row").first().innerText(), new RegExp(`step ${step}\\b[^]*prefill`));
    });
    await open(pageOf(recording()), {}, async (page) => assert.doesNotMatch(await page.locator("body").innerText(), /request/i));
  },
  async "pages hold names of files and no folders, and what was redacted is nowhere"() {
    for (const path of [compared().path, diverged().path, ofRanks().path, pageOf(recording())]) {
      assert.ok(!readFileSync(path, "utf8").includes(folder), path);
    }
    const redacted = join(folder, "redacted.plumb");
    const model = join(folder, "secret-model.gguf");
    run("model", "make", "--shape", "test-qwen2", "-o", model);
    execFileSync(plumb, ["decode", model, "--prompt-tokens", "4", "--steps", "12", "--threads", "1", "--out", redacted], { env: { ...environment, PLUMB: "on,redact=on" }, stdio: "pipe" });
    const page = readFileSync(pageOf(redacted), "utf8");
    for (const word of [folder, model, hostname(), "secret-", "--out"]) {
      assert.ok(!page.split('id="data">')[1].split("</script>")[0].includes(word), word);
    }
    await open(pageOf(redacted), {}, async (opened) => assert.doesNotMatch(await opened.locator("body").innerText(), /secret-|\/tmp\//));
  },
  async "a history has no page, and says so"() {
    const done = spawnSync(plumb, ["compare", "--history", folder, "--page", join(folder, "history.html")], { env: environment, encoding: "utf8" });
    assert.equal(done.status, 2);
    assert.match(done.stderr, /^error: [^\n]*--history excludes --page[^\n]*\n$/);
  },
  async "the slowest steps open their timelines, another step says that it has none"() {
    const path = join(here, "decode.plumb");
    const { slowest } = said("steps", path, "--slowest", "40");
    await open(pageOf(path), {}, async (page) => {
      const decode = slowest.filter((one) => one.phase === "decode");
      const links = page.locator("#steps").getByRole("table", { name: "The slowest steps" }).getByRole("link");
      assert.deepEqual(await links.allInnerTexts(), decode.slice(0, 5).map((one) => String(one.step)));
      for (const at of [3, 0, 3]) {
        await links.nth(at).click();
        assert.match(await page.locator("#timeline .choice [aria-pressed=true]").innerText(), new RegExp(`step ${decode[at].step}$`));
      }
      await page.getByRole("group", { name: "Steps over time" }).focus();
      await page.keyboard.press("Home"); // the first step is warm-up
      await page.keyboard.press("Enter");
      assert.match(await page.locator("#steps .readout").innerText(), /its timeline is not in this page: plumb timeline RECORDING --step \d+$/);
      await page.getByRole("group", { name: "Phase" }).getByRole("button", { name: "prefill" }).click();
      assert.match(await page.locator("#timeline").innerText(), /prefill, /);
    });
  },
  async "idle time has the names that the wall account has"() {
    const path = join(here, "decode.plumb");
    const lane = said("wall", path).phases.find((one) => one.phase === "decode").lanes[0];
    await open(pageOf(path), {}, async (page) => {
      for (const { name, self_ns } of lane.idle.scopes.slice(0, 8)) {
        const row = page.locator("#wall tr", { hasText: `in ${name}` }).filter({ hasNotText: "no waiting" });
        assert.equal(Number(await row.locator(".num").first().getAttribute("data-v")), self_ns / lane.steps);
      }
      assert.ok(lane.idle.scopes.length > 0);
    });
  },
  async "captured graphs have the figures of plumb replays"() {
    const path = recording("graphs");
    const { graphs } = said("replays", path);
    const { notes } = said("report", path);
    await open(pageOf(path), {}, async (page) => {
      const rows = page.locator("#graphs tbody tr");
      assert.equal(await rows.count(), graphs.length);
      for (const [i, graph] of graphs.entries()) {
        const shown = await rows.nth(i).locator(".num,.na").evaluateAll((all) => all.map((one) => (one.dataset.v === undefined ? null : Number(one.dataset.v))));
        assert.deepEqual(shown, [graph.padding_wasted, graph.plain_span_ns, graph.device_ns, graph.closure, graph.capture_ns].map((figure) => (typeof figure === "number" ? figure : null)));
        const cells = await rows.nth(i).locator("th,td").allInnerTexts();
        assert.deepEqual(cells.slice(0, 6), [graph.graph, graph.captures, graph.updates, graph.evictions, graph.replays, graph.instrumented].map(String));
      }
      const text = await page.locator("#answer").innerText();
      for (const note of notes.filter((one) => /closure|gate/.test(one))) assert.ok(text.includes(note), note);
    });
  },
  async "the roofline stands under the peaks of the recording"() {
    const path = join(here, "peaks.plumb");
    const report = said("report", path);
    await open(pageOf(path), {}, async (page) => {
      const roofs = await page.locator("#roofline path[data-read]").evaluateAll((all) => all.map((one) => [Number(one.dataset.read), Number(one.dataset.most)]));
      assert.deepEqual(roofs, report.peaks.map((one) => [one.read_gigabytes_per_second, Math.max(one.f32_teraflops, typeof one.bf16_teraflops === "number" ? one.bf16_teraflops : 0)]));
      await page.locator("#roofline summary").click();
      await page.locator("#roofline tbody tr").first().waitFor(); // a table is made after its details are open
      const shown = await page.locator("#roofline tbody tr").evaluateAll((all) => all.map((row) => [row.querySelector("th").innerText, ...[...row.querySelectorAll(".num")].map((one) => Number(one.dataset.v))]));
      const rows = report.bricks.filter((row) => row.phase === "decode" && row.roofline.intensity > 0 && row.teraflops > 0);
      assert.deepEqual(shown, rows.map((row) => [row.name, row.roofline.intensity, row.teraflops, row.roofline.share]));
    });
  },
  async "on paper a page is light and full"() {
    await open(pageOf(join(here, "decode.plumb")), { colorScheme: "dark" }, async (page) => {
      const paper = await page.pdf();
      assert.ok(paper.length > 50e3, `${paper.length} bytes`);
      assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
      await page.emulateMedia({ media: "print" });
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      const [ground, ink] = await page.locator("body").evaluate((body) => [getComputedStyle(body).backgroundColor, getComputedStyle(body).color]);
      assert.deepEqual([ground, ink], ["rgb(255, 255, 255)", "rgb(27, 31, 36)"]);
      for (const section of ["answer", "wall", "bricks", "layers", "steps", "timeline", "roofline", "unknown"]) {
        assert.ok((await page.locator(`#${section}`).boundingBox()).height > 50, section);
      }
      assert.ok(!(await page.locator("nav").isVisible()));
    });
  },
  async "no violation of accessibility in either theme and in forced colours"() {
    const pages = [recording(), recording("graphs"), recording("hostile"), recording("requests")].map((path) => pageOf(path));
    for (const page of [...pages, compared().path, diverged().path, ofRanks().path]) {
      for (const how of [{ colorScheme: "light" }, { colorScheme: "dark" }, { colorScheme: "light", forcedColors: "active" }, { colorScheme: "light", viewport: { width: 390, height: 800 } }]) {
        await open(page, how, async (opened) => {
          await opened.locator("details").evaluateAll((all) => all.forEach((one) => { one.open = true; }));
          await opened.waitForTimeout(200);
          assert.deepEqual(await violations(opened), [], JSON.stringify(how));
        });
      }
    }
  },
  async "nothing is wider than the window"() {
    const pages = ["", "hostile", "graphs", "requests"].map((kind) => pageOf(recording(kind)));
    for (const page of [...pages, compared().path, diverged().path, ofRanks().path]) {
      for (const width of [320, 390, 1440, 3840]) {
        await open(page, { viewport: { width, height: 900 } }, async (opened) => {
          assert.ok(await opened.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${page} ${width}`);
        });
      }
    }
  },
  async "the theme follows the system and the button"() {
    await open(pageOf(recording()), { colorScheme: "dark" }, async (page) => {
      const theme = () => page.locator("html").getAttribute("data-theme");
      assert.equal(await theme(), "dark");
      await page.emulateMedia({ colorScheme: "light" });
      await page.waitForSelector("html[data-theme=light]");
      await page.getByRole("button", { name: "Dark" }).click();
      assert.equal(await theme(), "dark");
      await page.emulateMedia({ colorScheme: "dark" });
      await page.getByRole("button", { name: "Light" }).click();
      assert.equal(await theme(), "light");
    });
  },
  async "everything is reached and moved by keys"() {
    await open(pageOf(recording()), {}, async (page) => {
      const seen = new Set();
      for (let i = 0; i < 200; ++i) {
        await page.keyboard.press("Tab");
        const at = await page.evaluate(() => {
          const one = document.activeElement;
          const shown = one && getComputedStyle(one);
          if (one !== document.body && shown.outlineStyle === "none") throw new Error(`no focus to be seen on ${one.outerHTML.slice(0, 80)}`);
          return one === document.body ? "" : one.getAttribute("aria-label") ?? (one.textContent.slice(0, 40) || one.tagName);
        });
        if (at === "" && i > 0) break;
        seen.add(at);
      }
      for (const word of ["To the figures", "Save the data", "decode", "prefill", "% wall", "The map as a table", "Zoom in", "Every span, as a table"]) {
        assert.ok([...seen].some((one) => one.startsWith(word)), `${word} is not reached: ${[...seen].join(" | ")}`);
      }
      const chart = (word) => page.getByRole("group", { name: word });
      await chart("Heat map").focus();
      await page.keyboard.press("ArrowRight");
      assert.match(await page.locator("#layers .readout").innerText(), /^layer 0, /);
      await page.keyboard.press("ArrowRight");
      assert.match(await page.locator("#layers .readout").innerText(), /^layer 1, /);
      await chart("Steps over time").focus();
      await page.keyboard.press("Home");
      const first = await page.locator("#steps .readout").innerText();
      await page.keyboard.press("ArrowRight");
      assert.notEqual(await page.locator("#steps .readout").innerText(), first);
      await chart("Timeline of").focus();
      await page.keyboard.press("n");
      const span = await page.locator("#timeline .readout").innerText();
      assert.match(span, /brick|task/);
      await page.keyboard.press("n");
      assert.notEqual(await page.locator("#timeline .readout").innerText(), span);
      for (const key of ["+", "+", "ArrowLeft", "-", "0"]) await page.keyboard.press(key);
      await page.getByLabel("Search").fill("lm_head");
      await page.keyboard.press("Enter");
      assert.match(await page.locator("#timeline .readout").innerText(), /^lm_head/);
      const heading = page.locator("#bricks thead").getByRole("button", { name: "brick" });
      await heading.focus();
      await page.keyboard.press("Enter");
      const names = await page.locator("#bricks tbody tr:not(.sum) th").allInnerTexts();
      assert.deepEqual(names, [...names].sort((a, b) => (a < b ? -1 : 1)));
    });
  },
  async "hostile names are text"() {
    const path = pageOf(recording("hostile"));
    const script = readFileSync(path, "utf8").split('id="data">')[1].split("</script>")[0];
    assert.doesNotMatch(script, /[<>&\u2028\u2029]/);
    await open(path, {}, async (page) => {
      await page.locator("details").evaluateAll((all) => all.forEach((one) => { one.open = true; }));
      assert.equal(await page.locator("img, iframe, script:not([type]) ~ script").count(), 0);
      assert.doesNotMatch(await page.title(), /broken/);
      const text = await page.locator("body").innerText();
      assert.doesNotMatch(text, /[\u0000-\u0008\u000e-\u001f\u202a-\u202e\u2066-\u2069\u2028\u2029]/);
      assert.match(text, /\u27e8U\+202E\u27e9/);
      assert.match(text, /bell\u2407 escape\u241b/);
      assert.match(text, /<\/script><script>/);
      assert.match(text, /n{50,}\u2026/);
    });
  },
  async "a hundred thousand steps are a small file"() {
    const path = pageOf(recording("long"));
    assert.ok(statSync(path).size <= 3e6, `${statSync(path).size} bytes`);
    await open(path, {}, async (page) => {
      const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
      console.log(`      ${statSync(path).size} bytes, first paint after ${Math.round(paint)} ms`);
      assert.match(await page.locator("#steps .lead").innerText(), /100,129 in the recording/);
    });
  },
  async "a run without steps, a killed one and several give a page"() {
    await open(pageOf(recording("loose")), {}, async (page) => {
      assert.match(await page.locator(".verdict").innerText(), /no complete step/);
      assert.match(await page.locator("#bricks").innerText(), /attention/);
    });
    await open(pageOf(recording("warm")), {}, async (page) => assert.match(await page.locator(".verdict").innerText(), /warm-up/));
    await open(pageOf(recording("killed")), {}, async (page) => assert.match(await page.locator("#bricks").innerText(), /lm_head/));
    await open(pageOf(recording("graphs")), {}, async (page) => assert.match(await page.locator("#graphs").innerText(), /128/));
    await open(pageOf(join(golden, "v1_graph_nodes.plumb")), {}, async (page) => assert.match(await page.locator("#graphs").innerText(), /18446744073709551615/));
    await open(pageOf(recording(), recording("graphs")), {}, async (page) => {
      await page.getByRole("group", { name: "Recording" }).getByRole("button").nth(1).click();
      assert.match(await page.locator("h1").innerText(), /rungraphs/);
    });
    for (const name of ["v1", "v1_bounded", "v1_causes", "v1_checks", "v1_graphs", "v1_graph_nodes", "v1_launches", "v1_nodes", "v1_tiles"]) {
      await open(pageOf(join(golden, `${name}.plumb`)), {}, async (page) => assert.ok((await page.locator("main").innerText()).length > 500, name));
    }
  },
  async "pages of committed recordings look as before"() {
    const wide = { width: 1280, height: 900 }, narrow = { width: 390, height: 844 };
    for (const [name, file, section, how] of [
      ["answer_light", "graphs", "answer", { viewport: wide, colorScheme: "light" }],
      ["answer_dark_narrow", "graphs", "answer", { viewport: narrow, colorScheme: "dark" }],
      ["bricks_dark", "graphs", "bricks", { viewport: wide, colorScheme: "dark" }],
      ["timeline_light", "graphs", "timeline", { viewport: wide, colorScheme: "light" }],
    ]) {
      const path = pageOf(join(here, `${file}.plumb`));
      await open(path, how, async (page) => {
        if (section !== "answer") await page.locator(`#${section}`).evaluate((one) => one.scrollIntoView({ behavior: "instant" }));
        await page.waitForTimeout(300);
        await looksAsBefore(name, page);
      });
    }
  },
  async "the picture of the README is the page of a decode"() {
    const picture = join(docs, "page.png");
    await open(pageOf(join(here, "decode.plumb")), { viewport: { width: 1120, height: 880 }, colorScheme: "light" }, async (page) => {
      await page.waitForTimeout(300);
      await looksAsBefore("readme", page, picture);
    });
    assert.ok(statSync(picture).size <= 150e3, `${statSync(picture).size} bytes`);
  },
  async "what cannot be written is one sentence"() {
    for (const output of ["/proc/none/page.html", folder]) {
      const done = spawnSync(plumb, ["page", recording(), "-o", output], { env: environment, encoding: "utf8" });
      assert.equal(done.status, 2);
      assert.match(done.stderr, /^error: .*\n$/);
    }
  },
};

let passed = 0, failed = 0;
for (const [name, test] of Object.entries(tests)) {
  if (!name.includes(only)) continue;
  try {
    await test();
    ++passed;
    console.log(`ok    ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAIL  ${name}\n${String(error.stack ?? error).split("\n").slice(0, 24).join("\n")}`);
  }
}
await browser.close();
rmSync(folder, { recursive: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
