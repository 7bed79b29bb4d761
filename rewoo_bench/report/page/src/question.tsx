// One question: the trajectories of the systems next to each other, a row for the same look-up.

import { useEffect, useRef, useState } from "preact/hooks";
import { readQuestion, type Answered, type Block, type Overview, type PlanStep, type Step, type System, type Table, type Trajectory } from "./data";
import { PlanGraph } from "./graph";
import { TimeLanes, TokenLanes } from "./lanes";
import { PlanKey, PlanOfLoop } from "./planned";
import { rowsOf, type Cells } from "./rows";
import { go, type State } from "./state";
import { nameOf } from "./table";
import { Term } from "./terms";
import { counted, dollars, Matched, number, Outcome, OUTCOMES, seconds, Text, visible } from "./text";
import { NARROW, useWidth } from "./width";

const COLUMN = 240; // pixels that a column of steps needs

interface Props { table: Table; systems: System[]; state: State; line: number; chosen: number[]; head: Overview }

// Shows one question for as long as it lives: another question needs another `key`.
export function QuestionView({ table, systems, line, chosen, head }: Props) {
  const [question, setQuestion] = useState<Answered | null>(null);
  const [problem, setProblem] = useState("");
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    let current = true;
    setProblem("");
    readQuestion(table, line).then(
      (read) => { if (current) { setQuestion(read); document.body.dataset.ready = String(line); } },
      (error: unknown) => { if (current) setProblem(String(error)); },
    );
    return () => { current = false; };
  }, [line, table]);
  useEffect(() => heading.current?.focus(), []);
  const gold = table.answers[line] ?? [];
  const at = chosen.indexOf(line);
  const open = (step: number) => { const next = chosen[at + step]; if (next !== undefined) go({ q: nameOf(table, next) }); };
  const columns = systems.flatMap((system) => {
    const trajectory = question?.get(system.label);
    return trajectory ? [{ system, trajectory }] : [];
  });
  return (
    <main class="question" aria-labelledby="question-title">
      <nav aria-label="Questions">
        <button type="button" onClick={() => go({ q: "" })}>← All questions</button>
        <button type="button" disabled={at <= 0} onClick={() => open(-1)}>Previous (k)</button>
        <button type="button" disabled={at < 0 || at >= chosen.length - 1} onClick={() => open(1)}>Next (j)</button>
        {at >= 0 && <span>{number(at + 1)} of {number(chosen.length)}</span>}
      </nav>
      <h1 id="question-title" tabIndex={-1} ref={heading}>{visible(table.questions[line] || nameOf(table, line))}</h1>
      <p class="gold">
        <span class="muted">{visible(nameOf(table, line))}{table.types[line] ? ` · ${visible(table.types[line]!)}` : ""}</span>
        {gold.length > 0 && <> · gold answer: <b class="text">{visible(gold.slice(0, 5).join(" | "))}</b>{gold.length > 5 ? ` and ${gold.length - 5} more` : ""}</>}
      </p>
      {problem && <p class="warning" role="alert">This question's data can't be read: {problem}</p>}
      {!head.texts && <p class="warning" role="note">This page was written without texts.</p>}
      <Answers systems={systems} question={question} line={line} gold={gold} head={head} />
      {question && (
        <>
          <Steps columns={columns.filter(({ trajectory }) => trajectory.steps.length || trajectory.blocks.length || trajectory.plan?.length || trajectory.notes.stderr || trajectory.prompts?.length)} />
          <h2>{columns.some(({ trajectory }) => trajectory.calls.some((call) => call.latency_s)) ? "Time and tokens" : "Tokens"}</h2>
          <TimeLanes lanes={columns.map(({ system, trajectory }) => ({ label: system.label, trajectory }))} />
          <TokenLanes lanes={columns.map(({ system, trajectory }) => ({ label: system.label, trajectory }))} />
        </>
      )}
    </main>
  );
}

interface Column { system: System; trajectory: Trajectory }

// What each system answered and took, above all steps.
function Answers({ systems, question, line, gold, head }: { systems: System[]; question: Answered | null; line: number; gold: string[]; head: Overview }) {
  return (
    <section class="answers" aria-label="Answers">
      {systems.filter((system) => (system.outcome[line] ?? "-") !== "-").map((system) => (
        <Answer system={system} trajectory={question?.get(system.label)} gold={gold} line={line} head={head} key={system.label} />
      ))}
    </section>
  );
}

// The steps in columns, as many as there is room for; where there are more systems, buttons choose.
function Steps({ columns }: { columns: Column[] }) {
  const width = useWidth();
  const [picked, setPicked] = useState<string[]>([]);
  const room = width < NARROW ? 1 : Math.max(1, Math.floor((width - 64) / COLUMN));
  const labels = columns.map(({ system }) => system.label);
  const kept = picked.filter((label) => labels.includes(label)).slice(-room);
  const shown = columns.length <= room ? labels : [...kept, ...labels.filter((label) => !kept.includes(label)).slice(0, room - kept.length)];
  if (!columns.length) return null;
  return (
    <>
      <h2>Steps</h2>
      {columns.length > room && (
        <div role="group" aria-label="Steps of" class="systems">
          {labels.map((label) => (
            <button type="button" aria-pressed={shown.includes(label)} onClick={() => setPicked([...kept.filter((each) => each !== label), label])}>{visible(label)}</button>
          ))}
        </div>
      )}
      <Columns columns={columns.filter(({ system }) => shown.includes(system.label))} />
      <Plans columns={columns} shown={shown} onColumn={(label) => setPicked([...kept.filter((each) => each !== label), label])} />
    </>
  );
}

// Of each loop what a plan could have had of its tool calls.
function Plans({ columns, shown, onColumn }: { columns: Column[]; shown: string[]; onColumn: (label: string) => void }) {
  const loops = columns.filter(({ trajectory }) => trajectory.planned?.length);
  if (!loops.length) return null;
  const show = (label: string, at: number) => {
    if (!shown.includes(label)) onColumn(label);
    requestAnimationFrame(() => reveal(columns.filter(({ system }) => shown.includes(system.label) || system.label === label).findIndex(({ system }) => system.label === label), at));
  };
  return (
    <>
      <h2>What could have been planned</h2>
      <PlanKey />
      <div class="plots">
        {loops.map(({ system, trajectory }) => <PlanOfLoop label={system.label} trajectory={trajectory} onStep={(at) => show(system.label, at)} key={system.label} />)}
      </div>
    </>
  );
}

function Columns({ columns }: { columns: Column[] }) {
  const { above, below, said } = rowsOf(columns.map(({ trajectory }) => trajectory));
  const row = (cells: Cells) => (
    <tr class={cells.filter((cell) => cell && "step" in cell).length > 1 ? "shared" : ""}>
      {cells.map((cell, i) => (
        <td key={columns[i]!.system.label} class={cell ? "" : "empty"}>
          {cell && ("step" in cell ? <StepOf step={cell.step} trajectory={columns[i]!.trajectory} column={i} /> : <BlockOf block={cell.block} />)}
        </td>
      ))}
    </tr>
  );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Trajectories">
      <table class="trajectories">
        <caption class="sr">A column for each system. Steps with the same tool and argument are in one row.</caption>
        <thead>
          <tr>{columns.map(({ system }) => <th scope="col" key={system.label}>{visible(system.label)}</th>)}</tr>
        </thead>
        <tbody>
          {columns.some(({ trajectory }) => trajectory.plan?.length) && (
            <tr>{columns.map(({ system, trajectory }, i) => <td key={system.label}><PlanOf trajectory={trajectory} column={i} /></td>)}</tr>
          )}
          {above.map(row)}
          {said && <tr class="parting"><th scope="colgroup" colSpan={columns.length}>{visible(said)}</th></tr>}
          {below.map(row)}
          {columns.some(({ trajectory }) => trajectory.notes.stderr || trajectory.prompts?.length) && (
            <tr>{columns.map(({ system, trajectory }) => <td key={system.label}><Texts trajectory={trajectory} /></td>)}</tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

// What is long and seldom read: standard error, and each prompt with its completion.
function Texts({ trajectory }: { trajectory: Trajectory }) {
  const log = trajectory.notes.stderr;
  return (
    <>
      {log && <details><summary>standard error</summary><pre tabIndex={0}>{visible(log)}</pre></details>}
      {trajectory.prompts?.map((each) => (
        <details><summary>prompt at {visible(each.place)}</summary><pre tabIndex={0}>{visible(each.prompt.join("\n\n"))}</pre><pre tabIndex={0}>{visible(each.completion)}</pre></details>
      ))}
    </>
  );
}

// Steps have the numbers of their places: two may have the same id.
function reveal(column: number, at: number) {
  const element = document.getElementById(`step-${column}-${at}`);
  element?.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  element?.focus();
}

function PlanOf({ trajectory, column }: { trajectory: Trajectory; column: number }) {
  if (!trajectory.plan?.length) return null;
  return <PlanGraph plan={trajectory.plan} steps={trajectory.steps} onStep={(id) => reveal(column, placeOf(trajectory, id))} />;
}

function BlockOf({ block }: { block: Block }) {
  return (
    <section class="block">
      <b>{visible(block.title)}</b>
      {block.text && <pre tabIndex={0}><Text>{block.text}</Text></pre>}
      {block.output && <p class="observation"><span class="muted">printed: </span><Text>{block.output}</Text></p>}
      {block.faults.map((fault) => <p class="fault"><Text>{fault}</Text></p>)}
    </section>
  );
}

function StepOf({ step, trajectory, column }: { step: Step; trajectory: Trajectory; column: number }) {
  const planned = trajectory.plan?.find((each) => each.id === step.id);
  const cited = trajectory.notes.citations?.cited.includes(step.id);
  return (
    <article class={`step${step.failed ? " failed" : ""}`} id={`step-${column}-${trajectory.steps.indexOf(step)}`} tabIndex={-1}>
      <header>
        <span class="id">{visible(step.id)}</span>
        {step.tool && <b>{visible(step.tool)}</b>}
        {step.failed && <span class="tag bad">failed</span>}
        {step.changes_state && <span class="tag"><Term>changes state</Term></span>}
        {step.attack.map((words) => <span class="tag bad"><Term>{words}</Term></span>)}
        {cited && <span class="tag">cited</span>}
      </header>
      {step.thought && <p class="thought"><Text>{step.thought}</Text></p>}
      {planned && placeholders(planned) && <p class="argument"><Planned step={planned} trajectory={trajectory} column={column} /></p>}
      {step.written && <p class="argument"><Text>{step.written}</Text></p>}
      {step.argument && <p class="argument"><span class="muted">asks: </span><Text>{step.argument}</Text></p>}
      {step.observation && <p class="observation"><span class="muted">result: </span><Text marked={trajectory.attackers_words}>{step.observation}</Text></p>}
    </article>
  );
}

const placeOf = (trajectory: Trajectory, id: string) => trajectory.steps.findIndex((step) => step.id === id);

const placeholders = (step: PlanStep) => (step.args ?? "").match(/\{\{\w+\}\}/g);

// The argument as it was planned: each placeholder leads to the step that fills it.
function Planned({ step, trajectory, column }: { step: PlanStep; trajectory: Trajectory; column: number }) {
  return (
    <span class="text planned">
      {(step.args ?? "").split(/(\{\{\w+\}\})/).map((part) => {
        const id = /^\{\{(\w+)\}\}$/.exec(part)?.[1];
        return id ? <button type="button" class="link" onClick={() => reveal(column, placeOf(trajectory, id))}>#{id}</button> : visible(part);
      })}
    </span>
  );
}

interface AnswerProps { system: System; trajectory: Trajectory | undefined; gold: string[]; line: number; head: Overview }

function Answer({ system, trajectory, gold, line, head }: AnswerProps) {
  const answer = trajectory?.answer ?? system.prediction[line];
  const error = trajectory?.error ?? system.error[line];
  const code = system.outcome[line] ?? "-", stop = system.stop[line];
  const known = (value: number | null | undefined): value is number => value !== null && value !== undefined;
  const startup = system.startup[line], changes = system.changes[line], unasked = system.unasked[line];
  const took = [
    known(system.tokens[line]) ? counted(system.tokens[line], "token") : "tokens unknown",
    known(system.cost[line]) ? dollars(system.cost[line]!) : "",
    known(system.calls[line]) ? counted(system.calls[line], "call") : "calls unknown",
    known(system.latency[line]) ? `${seconds(system.latency[line])} s` : "",
    known(startup) && startup > 0 ? `${seconds(startup)} s to start` : "",
    known(changes) ? counted(changes, "change") + " of state" + (unasked ? `, ${number(unasked)} unasked` : "") : "",
  ].filter(Boolean);
  return (
    <article class={`answer ${code === "r" ? "right" : code === "u" ? "not-scored" : "wrong"}`}>
      <h2><Outcome code={code} stop={stop} /> {visible(system.label)} <small aria-hidden="true">{OUTCOMES[code]?.word}{stop && stop !== "answered" ? ` (${visible(stop)})` : ""}</small></h2>
      <p>
        {answer === null || answer === undefined ? <i>{stop === "answered" ? "answer not shown" : "no answer"}</i> : <b><Matched text={answer} gold={gold} /></b>}
        {!head.checked && known(system.f1[line]) && <span class="muted"> <Term>F1</Term> {number(system.f1[line], 2)}</span>}
      </p>
      <p class="muted numbers">{took.join(" · ")}</p>
      {(system.flags[line] ?? []).map((flag) => <span class="tag bad flag"><Term says={head.flags[flag] ?? "This row is flagged."}>{flag}</Term></span>)}
      {trajectory && tags(trajectory).map((tag) => <span class="tag">{visible(tag)}</span>)}
      {trajectory?.answer_attacked && <span class="tag bad"><Term>attacker's words</Term></span>}
      {error && <div class="warning"><Text>{error}</Text></div>}
    </article>
  );
}

function tags({ replans, notes }: Trajectory): string[] {
  return [
    replans > 0 ? counted(replans, "replan") : "",
    notes.partial_answer ? "partial answer at the step limit" : "",
    notes.fallback ? "fallback to ReAct" : "",
    notes.dropped_steps ? counted(notes.dropped_steps, "dropped step") : "",
    notes.repaired?.length ? `${notes.repaired.length} repaired ${notes.repaired.length > 1 ? "replies" : "reply"}` : "",
    ...(notes.gateway ?? []),
    notes.citations?.unknown.length ? `cites unknown evidence: ${notes.citations.unknown.join(", ")}` : "",
  ].filter(Boolean);
}
