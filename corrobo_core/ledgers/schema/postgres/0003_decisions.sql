-- What people decided (8): append-only, and written by the function below alone where roles were set up (R1).

alter table {schema}.ledger add column roles json;   -- who may do what, if roles were set up

create table {schema}.decision (
  seq bigint generated always as identity primary key,
  ns text collate "C" not null,
  id text collate "C" not null,
  token text not null,                      -- of the episode
  kind text not null check (kind in ('approved', 'rejected', 'applied', 'not_applied', 'revoked')),
  recorded timestamptz not null,            -- ledger clock
  login text not null,                      -- the database role that was logged in
  doc json not null,                        -- reviewer, times, note, effect
  foreign key (ns, id) references {schema}.operation (ns, id) on delete restrict on update restrict
);

create index decision_operation on {schema}.decision (ns, id, seq);

-- Locks the operation, checks the episode, appends. The version goes up, so that a pass that has read the operation
-- before cannot write after it. Returns a refusal's code, or AGAIN, or null; the decision; the one before; the row.
create function {schema}.decide(
  p_ns text, p_id text, p_token text, p_kind text, p_reviewer text, p_decided_at timestamptz,
  p_expires_at timestamptz, p_fp text, p_note text, p_effect json
) returns table (
  code text, decision json, earlier json, now timestamptz, version bigint, owner bigint, nonce text,
  started timestamptz, abandoned timestamptz, type text, fp text, intent text, doc json
) language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  o record; episode json; first json; latest record; said json; at timestamptz; refusal text;
begin
  select * into o from {schema}.operation t where t.ns = p_ns and t.id = p_id for update;
  at := clock_timestamp();
  if not found then
    return query select 'NOT_AWAITING_DECISION', null::json, null::json, at, null::bigint, null::bigint, null::text,
                        null::timestamptz, null::timestamptz, null::text, null::text, null::text, null::json;
    return;
  end if;
  episode := o.doc -> 'episode';
  select d.doc into first from {schema}.decision d
    where d.ns = p_ns and d.id = p_id and d.token = p_token order by d.seq limit 1;
  select d.kind, d.doc into latest from {schema}.decision d
    where d.ns = p_ns and d.id = p_id and d.token = p_token order by d.seq desc limit 1;

  if p_kind = 'revoked' then
    if first is null or first ->> 'kind' <> 'approved' then
      refusal := 'NOT_AWAITING_DECISION';
    elsif latest.kind = 'revoked' then
      first := latest.doc;
      said := first;
      refusal := case when first ->> 'reviewer' = p_reviewer then 'AGAIN' else 'ALREADY_DECIDED' end;
    elsif exists (select from json_array_elements(o.doc -> 'attempts') a
                  where a -> 'approval' ->> 'token' = p_token) then
      refusal := 'ALREADY_USED';
    end if;
  elsif first is not null then
    said := first;
    refusal := case when first ->> 'kind' = p_kind and first ->> 'reviewer' = p_reviewer
                     and (first -> 'effect')::text is not distinct from p_effect::text
                     and (first ->> 'expires_at')::timestamptz is not distinct from p_expires_at
               then 'AGAIN' else 'ALREADY_DECIDED' end;
  elsif episode is null then
    refusal := 'NOT_AWAITING_DECISION';
  elsif episode ->> 'token' <> p_token then
    refusal := 'STALE_TOKEN';
  elsif (episode ->> 'kind' = 'REVIEW') is distinct from (p_kind in ('approved', 'rejected')) then
    refusal := 'NOT_AWAITING_DECISION';
  elsif p_decided_at < (episode ->> 'opened_at')::timestamptz then
    refusal := 'DECIDED_BEFORE_OPENED';
  elsif p_fp <> o.fp then
    refusal := 'INTENT_MISMATCH';
  elsif p_expires_at <= at then
    refusal := 'ALREADY_EXPIRED';
  end if;

  if refusal is null then
    said := json_strip_nulls(json_build_object(
      'token', p_token, 'kind', p_kind, 'reviewer', p_reviewer, 'decided_at', least(coalesce(p_decided_at, at), at),
      'expires_at', p_expires_at, 'intent_fingerprint', p_fp, 'note', nullif(p_note, ''),
      'attempt', coalesce((o.doc -> 'attempts' -> -1 ->> 'number')::bigint, 0)));
    if p_effect is not null then  -- as it was given: json_strip_nulls would go into it
      said := (left(said::text, -1) || ',"effect":' || p_effect::text || '}')::json;
    end if;
    insert into {schema}.decision as d (ns, id, token, kind, recorded, login, doc)
      values (p_ns, p_id, p_token, p_kind, at, session_user, said);
    update {schema}.operation t set version = t.version + 1 where t.ns = p_ns and t.id = p_id
      returning t.version into o.version;
  end if;
  return query select refusal, said, first, at, o.version, o.owner, o.nonce, o.started, o.abandoned, o.type, o.fp,
                      o.intent, o.doc;
end
$$;
