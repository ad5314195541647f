// SPDX-License-Identifier: Apache-2.0
// Builds page.html, the template that `plumb page` fills in: one file that needs nothing else.
// node build.mjs [FILE]
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const most = 60 * 1024; // bytes of the template as gzip packs it

async function bundle(entry) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["chrome100", "firefox100", "safari15"],
    charset: "ascii",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  return result.outputFiles[0].text.trimEnd();
}

const script = await bundle("src/main.tsx");
const style = await bundle("src/style.css");
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
// The policy lets nothing be fetched, and nothing run or be styled but what stands here.
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`;
const licences = ["preact", "uplot"].map((name) => `${name}: ${readFileSync(join(here, `node_modules/${name}/LICENSE`), "utf8").trim()}`).join("\n\n");
const parts = { LICENCES: licences, POLICY: policy, SCRIPT: script, STYLE: style };
const page = readFileSync(join(here, "src/shell.html"), "utf8").replace(/@(LICENCES|POLICY|SCRIPT|STYLE)@/g, (_, name) => parts[name]);
if (page.split("@PLUMB_DATA@").length !== 2) throw new Error("the page must hold @PLUMB_DATA@ once");
const packed = gzipSync(page, { level: 9 }).length;
console.log(`page.html: ${page.length} bytes, ${packed} packed`);
if (packed > most) throw new Error(`the page is ${packed} bytes packed; it may be ${most}`);
writeFileSync(process.argv[2] ?? join(here, "page.html"), page);
