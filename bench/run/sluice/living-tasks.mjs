import { Client } from 'pg';

/** A look past Sluice into its table, on a connection of its own. */
export async function openLivingTasks(url) {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    isDrained: async () => {
      const { rows } = await client.query('select exists (select from sluice.tasks) as living');
      return !rows[0].living;
    },
    close: () => client.end(),
  };
}
