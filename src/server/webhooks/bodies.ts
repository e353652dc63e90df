import type { ClaimedMessage } from '../../store/webhook-deliveries.js';

/** How a message is written: for programs as Standard Webhooks says, or for a channel of Slack. */
export type WebhookFormat = 'standard' | 'slack';

type Told = Pick<ClaimedMessage, 'eventType' | 'event' | 'createdAt'>;

/** The same for every try: a receiver may compare them. */
export function bodyOf(format: WebhookFormat, message: Told): string {
  return format === 'slack' ? slackBody(message) : standardBody(message);
}

function standardBody({ eventType, event, createdAt }: Told): string {
  return JSON.stringify({ type: eventType, timestamp: createdAt.toISOString(), data: event });
}

const signs: Readonly<Record<string, string>> = {
  critical: ':red_circle:',
  warning: ':large_yellow_circle:',
  info: ':large_blue_circle:',
};

function slackBody({ eventType, event }: Told): string {
  const { name, severity, summary, runbook } = event;
  const isOver = eventType === 'alert.resolved';
  const sign = isOver ? ':white_check_mark:' : (signs[String(severity)] ?? '');
  const title = isOver ? 'is over' : `fires (${String(severity)})`;
  const text = `${sign} *Sluice: ${escaped(name)}* ${title}\n${escaped(summary)}\n${escaped(runbook)}`;
  return JSON.stringify({ text });
}

/** What Slack would take for a link or a mention: a queue may have any name. */
function escaped(text: unknown): string {
  return String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
