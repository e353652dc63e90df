import { loadScript } from './script.js';

/** What each does is said at the head of its file in `lua/`. */
export const scripts = {
  audit: loadScript('audit'),
  begin: loadScript('begin'),
  configure: loadScript('configure'),
  confirm: loadScript('confirm'),
  counts: loadScript('counts'),
  discard: loadScript('discard'),
  finish: loadScript('finish'),
  leave: loadScript('leave'),
  levels: loadScript('levels'),
  listBehind: loadScript('list-behind'),
  listOut: loadScript('list-out'),
  live: loadScript('live'),
  look: loadScript('look'),
  missing: loadScript('missing'),
  offer: loadScript('offer'),
  open: loadScript('open'),
  positions: loadScript('positions'),
  refund: loadScript('refund'),
  remove: loadScript('remove'),
  renew: loadScript('renew'),
  resume: loadScript('resume'),
  survey: loadScript('survey'),
  take: loadScript('take'),
  wipe: loadScript('wipe'),
} as const;
