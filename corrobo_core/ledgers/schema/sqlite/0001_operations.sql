-- One row holds an operation with all its attempts: everything that the fence protects (C2).
-- Later migrations add tables for decisions (8) and gate events (9); both refer to (ns, id).

create table corrobo_ledger (
  one integer primary key check (one = 1),
  version integer not null,        -- number of the last migration
  id text not null,                -- random, 128 bits in hex: part of every idempotency key (I5)
  migrated text not null           -- when this version was reached
) strict;

create table corrobo_operation (
  ns text not null,                -- namespace
  id text not null,                -- operation id
  type text not null,
  fp text not null,                -- fingerprint of the intent
  intent text not null,            -- canonical JSON, as executed
  version integer not null,        -- every write names the version it read
  owner integer,                   -- key of the process whose attempt is reserved
  nonce text not null,             -- names the last write
  started text,                    -- ledger clock of the latest reservation, ISO 8601, UTC
  doc text not null,               -- the rest, JSON
  primary key (ns, id)
) strict;

-- What a pass learned about its own attempt after it had lost the operation; decides nothing (C2).
create table corrobo_late_evidence (
  seq integer primary key,
  ns text not null,
  id text not null,
  attempt integer not null,
  nonce text not null,
  at text not null,
  evidence text not null
) strict;

create index corrobo_late_evidence_operation on corrobo_late_evidence (ns, id);
