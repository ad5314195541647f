// SPDX-License-Identifier: Apache-2.0
// What other people's readers find in our files, as one line of JSON.
// usage: node readers.mjs FOLDER_OF_PACKAGES duckdb|hyparquet|chdb columns FILE     {column: {count, missing, sha1}}
//        node readers.mjs FOLDER_OF_PACKAGES duckdb|hyparquet|chdb sums FILE        {column: {count, missing, sum}} of three columns
//        node readers.mjs FOLDER_OF_PACKAGES duckdb query FOLDER FILE.sql           {columns, rows}, over folders as Hive lays them out
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [packages, reader, what, path, more] = process.argv.slice(2);
const require = createRequire(packages + '/');
const load = (name) => import(pathToFileURL(require.resolve(name)));

async function duckdb() {
  const { DuckDBInstance } = await load('@duckdb/node-api');
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  const ask = async (sql) => await connection.runAndReadAll(sql);
  return {
    ask,
    names: async () => (await ask(`describe from read_parquet('${path}', hive_partitioning = false)`)).getColumns()[0],
    column: async (name) =>
      (await ask(`select "${name}" from read_parquet('${path}', hive_partitioning = false)`)).getColumns()[0] ?? [],
  };
}

async function hyparquet() {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await load('hyparquet');
  const { compressors } = await load('hyparquet-compressors');
  const file = await asyncBufferFromFile(path);
  const metadata = await parquetMetadataAsync(file);
  return {
    names: async () => metadata.schema.slice(1).map((column) => column.name),
    column: async (name) =>
      (await parquetReadObjects({ file, metadata, compressors, columns: [name] })).map((row) => row[name]),
  };
}

async function chdb() {
  const { query } = require('chdb');
  const settings = 'settings max_threads = 1, input_format_parquet_preserve_order = 1, output_format_json_quote_64bit_integers = 1, use_hive_partitioning = 0';
  const ask = (sql) => query(sql, 'JSONCompactEachRow').split('\n').filter((line) => line).map((line) => JSON.parse(line));
  return {
    names: async () => ask(`describe file('${path}', Parquet) settings use_hive_partitioning = 0`).map((row) => row[0]),
    column: async (name) => ask(`select "${name}" from file('${path}', Parquet) ${settings}`).map((row) => row[0]),
  };
}

/** A cell as text: real numbers by their bits, so that no digit can hide. */
function text_of(cell) {
  if (cell === null || cell === undefined) {
    return '\0';
  }
  if (typeof cell === 'number') {
    const bits = Buffer.alloc(8);
    bits.writeDoubleBE(cell);
    return bits.toString('hex');
  }
  return String(cell);
}

function digest(cells) {
  const sha1 = createHash('sha1');
  let missing = 0;
  for (const cell of cells) {
    missing += cell === null || cell === undefined ? 1 : 0;
    sha1.update(text_of(cell) + '\x01');
  }
  return { count: cells.length, missing, sha1: sha1.digest('hex') };
}

function sum(cells) {
  let missing = 0;
  let all = 0n;
  for (const cell of cells) {
    if (cell === null || cell === undefined) {
      missing += 1;
    } else {
      all += BigInt(cell);
    }
  }
  return { count: cells.length, missing, sum: String(all) };
}

async function query_folder(file) {
  const { ask } = file;
  for (const table of ['scopes', 'steps']) {
    await ask(`create view ${table} as from read_parquet('${path}/${table}/**/*.parquet', hive_partitioning = true)`);
  }
  await ask("create view collectives as from scopes where category = 'collective'");
  const found = await ask(readFileSync(more, 'utf8'));
  return { columns: found.columnNames(), rows: found.getRows().map((row) => row.map((cell) => (cell === null ? null : String(cell)))) };
}

const file = await { duckdb, hyparquet, chdb }[reader]();
let found = {};
if (what === 'query') {
  found = await query_folder(file);
} else {
  for (const name of what === 'sums' ? ['step', 'begin', 'duration'] : await file.names()) {
    const cells = await file.column(name);
    found[name] = what === 'sums' ? sum(cells) : digest(cells);
  }
}
process.stdout.write(JSON.stringify(found) + '\n', () => process.exit(0));
