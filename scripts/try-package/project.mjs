import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A blank folder of a user, and what is done in it. A command that fails throws its output. */
export class Project {
  constructor(root, name) {
    this.name = name;
    this.folder = join(root, name);
    mkdirSync(this.folder);
  }

  path(file) {
    return join(this.folder, file);
  }

  write(file, content) {
    mkdirSync(dirname(this.path(file)), { recursive: true });
    writeFileSync(
      this.path(file),
      typeof content === 'string' ? content : JSON.stringify(content, null, 2),
    );
  }

  async install(packages, packageJson = {}) {
    this.write('package.json', { name: `try-${this.name}`, version: '1.0.0', ...packageJson });
    this.write('.npmrc', 'engine-strict=true\nignore-scripts=true\n');
    const quick = ['--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier'];
    await this.step('npm install', 'npm', ['install', ...quick, ...packages]);
  }

  /** Runs a program of node_modules/.bin, or node. */
  run(title, program, args, env = {}) {
    const command =
      program === 'node' ? process.execPath : this.path(`node_modules/.bin/${program}`);
    return this.step(title, command, args, env);
  }

  /** Starts a program that stays; `said` resolves when it prints what is expected. */
  start(program, args, expected) {
    const child = spawn(this.path(`node_modules/.bin/${program}`), args, {
      cwd: this.folder,
      env: cleanEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const said = new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text) => {
          output += text;
          const match = expected.exec(output);
          if (match !== null) resolve(match);
        });
      }
      child.on('error', reject);
      child.on('close', () =>
        reject(new Error(`✗ ${program} ${args.join(' ')} ended:\n${output}`)),
      );
    });
    return { child, said };
  }

  async step(title, command, args, env = {}) {
    const startedAt = performance.now();
    const { code, output } = await outputOf(command, args, { cwd: this.folder, env });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5);
    const line = `${this.name.padEnd(9)} ${title.padEnd(44)} ${seconds} s`;
    if (code === 0) console.log(`✓ ${line}`);
    else throw new Error(`✗ ${line}\n${output}`);
    return output;
  }
}

function outputOf(command, args, { cwd, env }) {
  const child = spawn(command, args, {
    cwd,
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => (output += text));
  }
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}

/** Without what `npm run` sets for this repository, and what would send Sluice elsewhere. */
function cleanEnvironment() {
  const isOurs = (name) =>
    /^(npm_(package|lifecycle|config_local)|SLUICE_|DATABASE_URL|REDIS_URL|NODE_OPTIONS)/.test(
      name,
    );
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOurs(name)));
}
