// SPDX-License-Identifier: Apache-2.0
// Today's ClickHouse engine (chdb): one query, as a line of JSON.
// usage: node chdb.cjs FOLDER_OF_PACKAGES FOLDER FILE.sql            a shipped query over the Parquet tables in FOLDER
//        node chdb.cjs FOLDER_OF_PACKAGES bodies FOLDER TABLES.sql   count and sums of RowBinary bodies, in the columns of scopes_local
const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');

const [packages, what, path, more] = process.argv.slice(2);
const { query } = createRequire(packages + '/')('chdb');

/** Names of tables become what stands in for them. */
function over_tables(folder, text) {
  const table = (name) => `file('${folder}/${name}/**/*.parquet', Parquet)`;
  return `${text.replace(/\bfrom (scopes|steps)\b/g, (_, name) => `from ${table(name)} as ${name}`)}
settings use_hive_partitioning = 0, joined_subquery_requires_alias = 0`;
}

function over_bodies(folder, tables) {
  const columns = /create table scopes_local\s*\(([^;]*?)\)\s*engine/.exec(tables)[1].replace(/\s+/g, ' ').trim();
  return `select count(), sum(begin), sum(duration) from file('${folder}/*.bin.zst', RowBinary, '${columns}')`;
}

const sql = what === 'bodies' ? over_bodies(path, readFileSync(more, 'utf8')) : over_tables(what, readFileSync(path, 'utf8').trimEnd());
process.stdout.write(query(sql, 'JSONCompact') + '\n');
