-- Bricks by their share of all brick time of a phase
select phase, brick, category, sum(calls)::bigint as calls, round(sum(total) / 1e6, 3) as total_ms,
       round(100 * sum(total) / sum(sum(total)) over (partition by phase), 1) as percent
from bricks where leaf
group by phase, brick, category
order by phase, total_ms desc, brick
