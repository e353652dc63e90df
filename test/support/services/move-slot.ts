import { Redis } from 'ioredis';
import type { RunningRedisCluster } from './redis-cluster.js';

interface Node {
  readonly client: Redis;
  readonly id: string;
  readonly port: number;
}

/** The slot of a key, and the nodes of a cluster of two: its owner, and the other one. */
export class MovingSlot {
  readonly slot: number;
  #owner: Node;
  #other: Node;

  private constructor(slot: number, owner: Node, other: Node) {
    this.slot = slot;
    this.#owner = owner;
    this.#other = other;
  }

  static async of(cluster: RunningRedisCluster, key: string): Promise<MovingSlot> {
    const [one, other] = await Promise.all(
      cluster.nodes.map(async ({ url, port }) => {
        const client = new Redis(url);
        return { client, port, id: await client.cluster('MYID') };
      }),
    );
    if (one === undefined || other === undefined) throw new Error('it takes two nodes');
    const slot = await one.client.cluster('KEYSLOT', key);
    const isOwner = await one.client.exists(key).then(
      () => true,
      () => false,
    );
    return isOwner ? new MovingSlot(slot, one, other) : new MovingSlot(slot, other, one);
  }

  /** How many keys the owner has of it. */
  count(): Promise<number> {
    return this.#owner.client.cluster('COUNTKEYSINSLOT', this.slot);
  }

  /** Key by key, as `redis-cli --cluster reshard` does it. Answers with how many keys were moved. */
  async move(beforeKey: (index: number) => Promise<void> = async () => undefined): Promise<number> {
    const [from, to] = [this.#owner, this.#other];
    await to.client.cluster('SETSLOT', this.slot, 'IMPORTING', from.id);
    await from.client.cluster('SETSLOT', this.slot, 'MIGRATING', to.id);
    let moved = 0;
    for (;;) {
      const keys = await from.client.cluster('GETKEYSINSLOT', this.slot, 10);
      if (keys.length === 0) break;
      for (const key of keys) {
        await beforeKey(moved);
        await from.client.migrate('127.0.0.1', to.port, key, 0, 10_000);
        moved += 1;
      }
    }
    await beforeKey(moved);
    await to.client.cluster('SETSLOT', this.slot, 'NODE', to.id);
    await from.client.cluster('SETSLOT', this.slot, 'NODE', to.id);
    [this.#owner, this.#other] = [to, from];
    return moved;
  }

  close(): void {
    this.#owner.client.disconnect();
    this.#other.client.disconnect();
  }
}
