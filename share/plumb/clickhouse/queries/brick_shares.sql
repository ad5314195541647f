-- Bricks by their share of all brick time of a phase
select phase, row.1 as brick, row.2 as category, row.3 as calls, floor(row.4 / 1e6 * 1000 + 0.5) / 1000 as total_ms,
       floor(100 * row.4 / of_phase * 10 + 0.5) / 10 as percent
from
(
    select phase, sum(total) as of_phase, groupArray((brick, category, calls, total)) as rows
    from
    (
        select phase, brick, category, count() as calls, sum(duration) as total
        from scopes
        where leaf and kind in ('scope', 'lap', 'span') and not warmup and position(flags, 'sampled') = 0
        group by phase, brick, category
    )
    group by phase
)
array join rows as row
order by phase, total_ms desc, brick
