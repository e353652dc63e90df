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

export function scalingFromWire({ queues, provisioner, ...scaling }: ScalingWire): Scaling {
  const { last_asked_at: lastAskedAt, failing_since: failingSince, ...asked } = provisioner;
  return {
    ...scaling,
    queues: queues.map(({ held_up_by: heldUpBy, ...queue }) => ({ ...queue, heldUpBy })),
    provisioner: {
      ...asked,
      lastAskedAt: timestampOrNullFromWire(lastAskedAt),
      failingSince: timestampOrNullFromWire(failingSince),
    },
  };
}
