-- SPDX-License-Identifier: Apache-2.0
-- Tables for `plumb export --to clickhouse://…`. Run it on every shard, in a database of its own, once:
--     clickhouse-client --query "create database plumb"
--     clickhouse-client --database plumb --multiquery < tables.sql
-- A cluster called plumb, with these shards in the order in which --to names them, is in the server's remote_servers.

-- What was sent. Rows are those of one attempt; nothing reads them but the views below.
create table scopes_local
(
    upload UInt64, recording String, host String, rank Nullable(Int64), kind String, step Nullable(Int64), phase String,
    layer Nullable(Int64), brick Nullable(String), category Nullable(String), track Int64, track_name String,
    begin Int64, duration Nullable(Int64), bytes Nullable(Float64), flops Nullable(Float64), source String,
    leaf Nullable(UInt8), warmup UInt8, flags String
)
engine = MergeTree partition by (recording, ifNull(rank, -1)) order by begin;

create table steps_local
(
    upload UInt64, recording String, host String, rank Nullable(Int64), step Int64, phase String, track Int64, track_name String,
    begin Int64, duration Int64, period Int64, prefill_tokens Int64, decode_tokens Int64, sequences Int64,
    kv_length Nullable(Int64), warmup UInt8, flags String
)
engine = MergeTree partition by (recording, ifNull(rank, -1)) order by begin;

-- What is committed: a row once all rows of a recording are there. `at`: ns since 1970.
create table plumb_uploads_local
(
    upload UInt64, recording String, host String, rank Nullable(Int64), scopes Int64, steps Int64, at Int64
)
engine = MergeTree partition by (recording, ifNull(rank, -1)) order by at;

create view scopes_committed as
select recording, host, rank, kind, step, phase, layer, brick, category, track, track_name, begin, duration, bytes, flops, source,
       leaf, warmup, flags
from scopes_local
where upload in (select argMax(upload, at) from plumb_uploads_local group by recording);

create view steps_committed as
select recording, host, rank, step, phase, track, track_name, begin, duration, period, prefill_tokens, decode_tokens, sequences,
       kv_length, warmup, flags
from steps_local
where upload in (select argMax(upload, at) from plumb_uploads_local group by recording);

-- What is asked: the committed rows of all shards.
create table scopes
(
    recording String, host String, rank Nullable(Int64), kind String, step Nullable(Int64), phase String, layer Nullable(Int64),
    brick Nullable(String), category Nullable(String), track Int64, track_name String, begin Int64, duration Nullable(Int64),
    bytes Nullable(Float64), flops Nullable(Float64), source String, leaf Nullable(UInt8), warmup UInt8, flags String
)
engine = Distributed(plumb, currentDatabase(), scopes_committed, ifNull(rank, 0));

create table steps
(
    recording String, host String, rank Nullable(Int64), step Int64, phase String, track Int64, track_name String, begin Int64,
    duration Int64, period Int64, prefill_tokens Int64, decode_tokens Int64, sequences Int64, kv_length Nullable(Int64), warmup UInt8,
    flags String
)
engine = Distributed(plumb, currentDatabase(), steps_committed, ifNull(rank, 0));

create table plumb_uploads
(
    upload UInt64, recording String, host String, rank Nullable(Int64), scopes Int64, steps Int64, at Int64
)
engine = Distributed(plumb, currentDatabase(), plumb_uploads_local, ifNull(rank, 0));
