import { describe, expect, it } from 'vitest';
import { Attempts, networkOf } from './attempts.js';

describe('attempts', () => {
  it('R-AD6: after ten in a minute the address is blocked for the rest of it', () => {
    const failures = new Attempts();
    for (let n = 0; n < 10; n++) {
      expect(failures.blockedForMs('10.0.0.1', n * 1_000)).toBeNull();
      failures.note('10.0.0.1', n * 1_000);
    }
    expect(failures.blockedForMs('10.0.0.1', 10_000)).toBe(50_000);
    expect(failures.blockedForMs('10.0.0.2', 10_000)).toBeNull();
    expect(failures.blockedForMs('10.0.0.1', 60_000)).toBeNull();
  });

  it('R-AD6: remembers a bounded number of addresses', () => {
    const failures = new Attempts({ attempts: 1, remembered: 3 });
    for (let n = 1; n <= 5; n++) failures.note(`10.0.0.${n}`, 0);
    const blocked = [1, 2, 3, 4, 5].filter((n) => failures.blockedForMs(`10.0.0.${n}`, 0) !== null);
    expect(blocked).toEqual([3, 4, 5]);
  });

  it.each([
    ['10.0.0.1', '10.0.0.1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:DB8:1:2::6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
  ])('%s is of the network %s', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
