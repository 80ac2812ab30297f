-- Read one operation, who makes its attempt, and the time.
-- $1 ns  $2 id  $3 own key
select clock_timestamp(), pg_is_in_recovery(),
       case when o.owner <> $3::bigint then not pg_try_advisory_xact_lock_shared(o.owner) end,
       o.version, o.owner, o.nonce, o.started, o.abandoned, o.type, o.fp, o.intent, o.doc,
       case when o.doc ->> 'episodes' is not null then (
         select json_agg(d.doc order by d.seq) from {schema}.decision d where d.ns = o.ns and d.id = o.id
       ) end
from (select) here left join {schema}.operation o on o.ns = $1::text and o.id = $2::text
