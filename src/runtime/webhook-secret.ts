const prefix = 'whsec_';
const leastBytes = 24;
const mostBytes = 64;

export const webhookSecretForm =
  `${prefix} and ${leastBytes} to ${mostBytes} bytes as base64; this makes one: ` +
  `node -p "'${prefix}' + crypto.randomBytes(32).toString('base64')"`;

/** As Standard Webhooks writes it. */
export function isWebhookSecret(secret: string): boolean {
  if (!/^whsec_[A-Za-z0-9+/]+={0,2}$/.test(secret)) return false;
  const { length } = secretBytes(secret);
  return length >= leastBytes && length <= mostBytes;
}

export function secretBytes(secret: string): Buffer {
  return Buffer.from(secret.slice(prefix.length), 'base64');
}
