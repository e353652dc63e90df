import { SingleBar } from 'cli-progress';

/** A bar where a person looks; elsewhere a line for each contender, which a log can keep. */
export interface Progress {
  begin(title: string, round: number): void;
  step(name: string): void;
  end(told: string): void;
  stop(): void;
}

export function showProgress(rounds: number, contenders: number): Progress {
  return process.stderr.isTTY ? bar(rounds, contenders) : lines(rounds);
}

function bar(rounds: number, contenders: number): Progress {
  const single = new SingleBar({
    format: '  {bar} {value}/{total}  {what}',
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 30,
    hideCursor: true,
    clearOnComplete: true,
  });
  let title = '';
  single.start(rounds * contenders, 0, { what: '' });
  return {
    begin: (name, round) => {
      title = `round ${round + 1}, ${name}`;
      single.update({ what: title });
    },
    step: (name) => single.update({ what: `${title}: ${name}` }),
    end: () => single.increment(),
    stop: () => single.stop(),
  };
}

function lines(rounds: number): Progress {
  let title = '';
  return {
    begin: (name, round) => {
      title = `round ${round + 1} of ${rounds}, ${name}`;
    },
    step: () => undefined,
    end: (told) => console.error(`${title}: ${told}`),
    stop: () => undefined,
  };
}
