-- Append what a pass learned after it had lost the operation; once, also when the reply was lost (C2).
-- $1 ns  $2 id  $3 attempt  $4 nonce  $5 evidence
insert into {schema}.late_evidence (ns, id, attempt, nonce, at, evidence)
select $1::text, $2::text, $3::bigint, $4::text, clock_timestamp(), $5::json
where not exists (
  select from {schema}.late_evidence l
  where l.ns = $1::text and l.id = $2::text and l.nonce = $4::text and l.evidence::text = $5::json::text
)
