// The data in the page: the head, the table of questions, and trajectories in compressed chunks.

export interface Interval { low: number; high: number }

export interface Point {
  label: string;
  n: number;
  em?: number;
  low?: number;
  high?: number;
  tokens?: number;
  input?: number; // without cached
  cached?: number;
  output?: number;
  cost?: number;
}

export interface Cells { head: string[]; rows: string[][]; caption?: string }

export interface Overview {
  title: string;
  facts: [string, string][];
  table: Cells | null;
  ends: Cells | null; // further scores, and how the questions ended
  trials: Cells | null; // where questions were asked several times
  attacks: Cells | null; // where an attacker's text stood in a result
  times: Cells | null;
  points: Point[];
  checked: boolean; // a world's check is the score: F1 is the same
  flags: Record<string, string>; // what each flag says of its question
  sentences: { a: string; b: string; text: string }[]; // a and b are empty where it is about none of two systems
  notes: string[];
  threats: string[];
  claims: Claim[];
  manifests: unknown[];
  figures: { name: string; alt: string; src: string }[];
  planned: PlannedLoop[];
  texts: boolean;
}

// What a plan could have had of a loop's tool calls.
export interface PlannedLoop {
  label: string;
  sentences: string[];
  notes: string[];
  trust: string; // what the measured predictions are of
  tables: Cells[]; // by way to plan, measured estimates, by kind of value, by condition of a call
}

// A tool call as a plan could have had it. Kinds, choices and ways are numbers: see planned.tsx.
export interface PlannedCall {
  at: number; // position of its step
  segment: number;
  depth: number;
  choice: number;
  values: [path: string, text: string, kind: number, sources?: [step: number, how: number, path: string][]][];
  more: number;
}

export interface Claim {
  id: string;
  about: string;
  says: string;
  source: string;
  claimed: string;
  measured: string; // of the run that decides, empty where none does
  verdict: string;
  run: string;
  also: string; // how many figures of other runs lie where
  why: string;
  note: string;
  cited: string[];
  figures: [string, string, string, string][]; // run, model, measured, verdict; the deciding one first
}

export interface System {
  label: string;
  architecture: string;
  model: string;
  outcome: string; // one letter a line: r right, w wrong, f failed, u not scored, - not asked
  stop: (string | null)[];
  tokens: (number | null)[];
  calls: (number | null)[];
  latency: (number | null)[]; // null where nothing was timed: an oracle, a replay
  startup: (number | null)[];
  changes: (number | null)[]; // of state; null where no tool makes any
  unasked: (number | null)[]; // those of them that the task doesn't ask for
  cost: (number | null)[]; // dollars
  flags: string[][];
  f1: (number | null)[];
  prediction: (string | null)[];
  error: (string | null)[];
  paths?: (number[] | null)[]; // rows of the look-ups of each line; a live page has them of small runs only
}

export interface Table {
  ids: string[];
  trials: number[];
  datasets: string[];
  types: string[];
  questions: string[];
  answers: string[][];
  systems: System[];
}

export interface Step {
  id: string;
  thought?: string;
  tool: string | null;
  argument?: string;
  observation?: string;
  failed: boolean;
  changes_state: boolean; // it has done so: false where it failed
  attack: string[]; // what an attacker's text has to do with it
  written?: string; // the argument before results of its own turn were filled in
}

export interface PlanStep { id: string; tool: string; args?: string; depends_on: string[] }

export interface Call {
  kind: string;
  name: string;
  role?: string;
  place?: string;
  status?: string;
  changes_state?: boolean; // whether its tool says so
  attempts?: number;
  finish_reason?: string;
  input_tokens?: number;
  cached_input_tokens?: number;
  output_tokens?: number;
  reasoning_tokens?: number;
  context_tokens?: number;
  exemplar_tokens?: number;
  question_tokens?: number;
  written_tokens?: number;
  found_tokens?: number;
  latency_s?: number;
  waiting_s?: number;
  replayed?: boolean;
  start_s?: number;
}

export interface Trajectory {
  steps: Step[];
  rows: number[]; // the row of each step
  path: number[]; // those of look-ups
  plan: PlanStep[] | null;
  answer: string | null;
  attackers_words: string | null; // words that an attacker has written
  answer_attacked: boolean;
  error: string | null;
  replans: number;
  blocks: Block[];
  notes: { citations?: { cited: string[]; unknown: string[] }; partial_answer?: boolean; fallback?: string;
           dropped_steps?: number; repaired?: string[]; gateway?: string[]; stderr?: string };
  calls: Call[];
  planned?: PlannedCall[] | null;
  prompts?: { place: string; prompt: string[]; completion: string }[];
}

// A program, an unusable plan, or where a new plan begins: before step `at`. `end`: after the last step of a program.
export interface Block { at: number; end: number; title: string; text: string; output: string; faults: string[] }

export interface Question { systems: (Trajectory | null)[] }

function textOf(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

async function unpacked<T>(base64: string): Promise<T> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text()) as T;
}

// Where a live page (rewoo-bench report --live) gets its data; empty in a file.
export const live = document.getElementById("app")?.dataset.live ?? "";

async function fetched<T>(name: string): Promise<T> {
  const response = await fetch(live + name);
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as T;
}

export async function readOverview(): Promise<Overview> {
  return live ? fetched<Overview>("overview") : (JSON.parse(textOf("overview")) as Overview);
}

export function readTable(): Promise<Table> {
  return live ? fetched<Table>("table") : unpacked<Table>(textOf("table"));
}

// Calls `changed` whenever the run has something new. The browser connects again by itself.
export function watch(changed: () => void): void {
  if (live) new EventSource(`${live}events`).addEventListener("message", changed);
}

const chunks = new Map<number, Promise<Question[]>>();
const KEPT = 8; // unpacked chunks, so that memory stays flat while somebody pages through all questions

// The trajectories of one question by the labels of their systems: a live page may list other systems in between.
export type Answered = Map<string, Trajectory>;

// From a live page: by the question's key, since its line is another one whenever a question before it is finished.
async function fetchQuestion(table: Table, line: number): Promise<Answered> {
  const key = { dataset: table.datasets[line]!, id: table.ids[line]!, trial: String(table.trials[line]!) };
  const question = await fetched<Question & { labels: string[] }>(`question?${new URLSearchParams(key).toString()}`);
  return labelled(question.labels, question);
}

function labelled(labels: string[], question: Question): Answered {
  return new Map(labels.flatMap((label, i) => (question.systems[i] ? [[label, question.systems[i]]] : [])));
}

export async function readQuestion(table: Table, line: number): Promise<Answered> {
  if (live) return fetchQuestion(table, line);
  const size = Number(document.getElementById("table")?.dataset.chunk ?? 32);
  const number = Math.floor(line / size);
  let chunk = chunks.get(number);
  if (!chunk) {
    const element = document.getElementsByClassName("chunk")[number];
    chunk = element ? unpacked<Question[]>(element.textContent ?? "") : Promise.resolve([]);
    if (chunks.size >= KEPT) chunks.delete(chunks.keys().next().value as number);
    chunks.set(number, chunk);
  }
  return labelled(table.systems.map(({ label }) => label), (await chunk)[line % size] ?? { systems: [] });
}
