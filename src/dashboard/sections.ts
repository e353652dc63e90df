import { config } from './config.js';
import { href } from './href.js';

interface Section {
  /** After `g`. */
  readonly key: string;
  /** In the address. */
  readonly name: string;
  readonly title: string;
}

const all: readonly (Section & { readonly isOffered: boolean })[] = [
  { key: 'o', name: '', title: 'Overview', isOffered: true },
  { key: 'q', name: 'queues', title: 'Queues', isOffered: true },
  { key: 't', name: 'tasks', title: 'Tasks', isOffered: true },
  { key: 'w', name: 'workers', title: 'Workers', isOffered: true },
  { key: 'd', name: 'dead-letters', title: 'Dead letters', isOffered: true },
  { key: 'a', name: 'alerts', title: 'Alerts', isOffered: config.has.alerts },
  { key: 'k', name: 'keys', title: 'API keys', isOffered: config.may.admin },
  { key: 'l', name: 'audit', title: 'Audit', isOffered: config.has.audit && config.may.admin },
];

/** The pages that this server has and this person may see: the menu, the keys and their help list no others. */
export const sections: readonly Section[] = all.filter(({ isOffered }) => isOffered);

/** Undefined: the key leads nowhere. */
export function addressOfKey(key: string): string | undefined {
  const section = sections.find((one) => one.key === key);
  return section === undefined ? undefined : href(section.name);
}
