// SPDX-License-Identifier: Apache-2.0
// node decode.cjs FOLDER < lines: each line as an ExportTraceServiceRequest, by the published schema in the package of FOLDER.
// Prints {problems, spans}. OTLP/JSON differs from protobuf's JSON in one thing: ids are hexadecimal.
const path = require("node:path");
const fs = require("node:fs");

const root = require(path.resolve(process.argv[2], "node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js"));
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const ids = new Map([["traceId", 16], ["spanId", 8], ["parentSpanId", 8]]);
const problems = [];
const spans = [];

// Ids as bytes; anything else as it is.
function withBytes(value, key) {
  if (ids.has(key)) {
    if (typeof value !== "string" || !/^[0-9a-f]+$/.test(value) || value.length !== 2 * ids.get(key)) {
      problems.push(`${key} is ${JSON.stringify(value)}`);
      return Buffer.alloc(ids.get(key));
    }
    return Buffer.from(value, "hex");
  }
  if (Array.isArray(value)) return value.map((item) => withBytes(item));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withBytes(item, name)]));
  }
  return value;
}

// The same the other way, as OTLP/JSON writes it.
function withHex(value, key) {
  if (ids.has(key)) return Buffer.from(value).toString("hex");
  if (Array.isArray(value)) return value.map((item) => withHex(item));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withHex(item, name)]));
  }
  return value;
}

// Whatever a decoder does not know, or knows as something else, is not the same behind it.
function compare(sent, came, where) {
  if (sent !== null && typeof sent === "object") {
    for (const name of Object.keys(sent)) {
      const empty = Array.isArray(sent[name]) && sent[name].length === 0;
      if (came === null || typeof came !== "object" || (!(name in came) && !empty)) {
        problems.push(`${where}.${name} is not in the schema`);
      } else if (!empty) {
        compare(sent[name], came[name], `${where}.${name}`);
      }
    }
  } else if (sent !== came) {
    problems.push(`${where} is ${JSON.stringify(sent)}, and ${JSON.stringify(came)} behind the decoder`);
  }
}

for (const [number, line] of fs.readFileSync(0, "utf8").split("\n").entries()) {
  if (line === "") continue;
  try {
    const sent = JSON.parse(line);
    const message = Request.fromObject(withBytes(sent));
    const invalid = Request.verify(message);
    if (invalid !== null) problems.push(`line ${number}: ${invalid}`);
    const came = Request.decode(Request.encode(message).finish());
    // Enumerations as the words of the schema: one that has none for a number leaves the number.
    for (const resource of Request.toObject(came, { enums: String, longs: String }).resourceSpans ?? []) {
      for (const scope of resource.scopeSpans ?? []) {
        for (const span of scope.spans ?? []) {
          if (typeof span.kind !== "string") problems.push(`line ${number}: a span is of kind ${span.kind}`);
        }
      }
    }
    const back = withHex(Request.toObject(came, { longs: String, bytes: Array }));
    compare(sent, back, `line ${number}`);
    for (const resource of back.resourceSpans ?? []) {
      for (const scope of resource.scopeSpans ?? []) {
        for (const span of scope.spans ?? []) {
          spans.push({
            traceId: span.traceId, spanId: span.spanId, parentSpanId: span.parentSpanId ?? "", name: span.name,
            start: span.startTimeUnixNano, end: span.endTimeUnixNano, links: (span.links ?? []).map((link) => link.spanId),
            attributes: Object.fromEntries((span.attributes ?? []).map((each) => [each.key, Object.values(each.value)[0]])),
          });
        }
      }
    }
  } catch (error) {
    problems.push(`line ${number}: ${error.message}`);
  }
}
console.log(JSON.stringify({ problems, spans }));
