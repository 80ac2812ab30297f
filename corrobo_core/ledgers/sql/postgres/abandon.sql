-- Mark an attempt that its process gave up without a record (L7). A locked row can wait for the next time.
-- $1 ns  $2 id  $3 nonce of the attempt  $4 keys of its process, as text of an array
with here as materialized (
  select set_config('lock_timeout', '50ms', true) as lock_timeout
)
update {schema}.operation o
set version = o.version + 1, owner = null, nonce = o.nonce || '.abandoned', abandoned = clock_timestamp()
from here
where here.lock_timeout is not null and o.ns = $1::text and o.id = $2::text and o.owner = any ($4::text::bigint[])
  and o.doc -> 'attempts' -> -1 ->> 'nonce' = $3::text and o.doc -> 'attempts' -> -1 ->> 'outcome' is null
