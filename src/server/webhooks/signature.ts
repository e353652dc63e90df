import { createHmac } from 'node:crypto';
import { secretBytes } from '../../runtime/webhook-secret.js';

export interface Signed {
  readonly messageId: string;
  readonly body: string;
  /** In milliseconds. A receiver refuses what is more than 5 minutes old. */
  readonly nowMs: number;
}

/** The headers of Standard Webhooks: which message it is, when it was sent, and by whom. */
export function signedHeaders(
  secret: string,
  { messageId, body, nowMs }: Signed,
): Record<string, string> {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signature = createHmac('sha256', secretBytes(secret))
    .update(`${messageId}.${timestamp}.${body}`)
    .digest('base64');
  return {
    'webhook-id': messageId,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  };
}
