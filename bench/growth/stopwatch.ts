/** Adds up how long things took. */
export class Stopwatch {
  ms = 0;

  async time<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    const beganMs = performance.now();
    const answer = await work();
    this.ms += performance.now() - beganMs;
    return answer;
  }
}
