import { timestampOrNullFromWire, timestampOrNullToWire } from './common-wire.js';
import type { Scaling } from './scaling-api.js';
import type { ScalingWire } from './scaling-schema.js';

export function scalingToWire(scaling: Scaling): ScalingWire {
  const { desired, current, min, max, waiting, reason, queues, provisioner } = scaling;
  return {
    desired,
    current,
    min,
    max,
    waiting,
    reason,
    queues: queues.map((queue) => ({
      queue: queue.queue,
      due: queue.due,
      waiting: queue.waiting,
      held_up_by: queue.heldUpBy,
    })),
    provisioner: {
      kind: provisioner.kind,
      last_asked_at: timestampOrNullToWire(provisioner.lastAskedAt),
      failing_since: timestampOrNullToWire(provisioner.failingSince),
      error: provisioner.error,
    },
  };
}

export function scalingFromWire(wire: ScalingWire): Scaling {
  const { desired, current, min, max, waiting, reason, queues, provisioner } = wire;
  return {
    desired,
    current,
    min,
    max,
    waiting,
    reason,
    queues: queues.map((queue) => ({
      queue: queue.queue,
      due: queue.due,
      waiting: queue.waiting,
      heldUpBy: queue.held_up_by,
    })),
    provisioner: {
      kind: provisioner.kind,
      lastAskedAt: timestampOrNullFromWire(provisioner.last_asked_at),
      failingSince: timestampOrNullFromWire(provisioner.failing_since),
      error: provisioner.error,
    },
  };
}
