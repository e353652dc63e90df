-- Where a person signed in from, for the list of sessions.
alter table sluice.api_keys add column signed_in_from text;
