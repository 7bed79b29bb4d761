// One question: the trajectories of the systems next to each other, a row for the same look-up.

import { useEffect, useRef, useState } from "preact/hooks";
import { readQuestion, type Answered, type PlanStep, type Step, type System, type Table, type Trajectory } from "./data";
import { PlanGraph } from "./graph";
import { TimeLanes, TokenLanes } from "./lanes";
import { go, type State } from "./state";
import { nameOf } from "./table";
import { counted, Matched, number, Outcome, Text, visible } from "./text";

interface Props { table: Table; systems: System[]; state: State; line: number; chosen: number[]; texts: boolean }

// Shows one question for as long as it lives: another question needs another `key`.
export function QuestionView({ table, systems, line, chosen, texts }: Props) {
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
      {!texts && <p class="warning" role="note">This page was written without texts.</p>}
      {question && (
        <>
          <Columns columns={columns} table={table} line={line} gold={gold} />
          <h2>Time and tokens</h2>
          <TimeLanes lanes={columns.map(({ system, trajectory }) => ({ label: system.label, trajectory }))} />
          <TokenLanes lanes={columns.map(({ system, trajectory }) => ({ label: system.label, trajectory }))} />
        </>
      )}
    </main>
  );
}

interface Column { system: System; trajectory: Trajectory }

function Columns({ columns, table, line, gold }: { columns: Column[]; table: Table; line: number; gold: string[] }) {
  const rows = [...new Set(columns.flatMap(({ trajectory }) => trajectory.rows))].sort((a, b) => a - b);
  const steps = columns.map(({ trajectory }) => new Map(trajectory.steps.map((step, i) => [trajectory.rows[i]!, step])));
  const shared = (row: number) => steps.filter((own) => own.has(row)).length > 1;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Trajectories">
      <table class="trajectories" style={{ minWidth: `${columns.length * 20}rem` }}>
        <caption class="sr">A column for each system. Steps with the same tool and argument are in one row.</caption>
        <thead>
          <tr>{columns.map(({ system }) => <Header system={system} line={line} key={system.label} />)}</tr>
        </thead>
        <tbody>
          {columns.some(({ trajectory }) => trajectory.plan?.length) && (
            <tr>{columns.map(({ system, trajectory }, i) => <td key={system.label}><PlanOf trajectory={trajectory} column={i} /></td>)}</tr>
          )}
          {rows.map((row) => (
            <tr class={shared(row) ? "shared" : ""} key={row}>
              {columns.map(({ system, trajectory }, i) => {
                const step = steps[i]!.get(row);
                return <td key={system.label} class={step ? "" : "empty"}>{step && <StepOf step={step} trajectory={trajectory} column={i} />}</td>;
              })}
            </tr>
          ))}
          <tr class="answers">
            {columns.map(({ system, trajectory }) => (
              <td key={system.label}><Answer system={system} trajectory={trajectory} gold={gold} line={table.systems.indexOf(system) >= 0 ? line : -1} /></td>
            ))}
          </tr>
        </tbody>
      </table>
    </div>
  );
}

function Header({ system, line }: { system: System; line: number }) {
  return (
    <th scope="col">
      <Outcome code={system.outcome[line] ?? "-"} stop={system.stop[line]} /> {visible(system.label)}
      <span class="muted numbers"> {counted(system.tokens[line], "token")} · {counted(system.calls[line], "call")}{system.latency[line] !== null ? ` · ${number(system.latency[line], 1)} s` : ""}</span>
    </th>
  );
}

function reveal(column: number, id: string) {
  const element = document.getElementById(`step-${column}-${id}`);
  element?.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  element?.focus();
}

function PlanOf({ trajectory, column }: { trajectory: Trajectory; column: number }) {
  if (!trajectory.plan?.length) return null;
  const rejected = trajectory.drafts.filter((draft) => draft.faults.length);
  return (
    <>
      <PlanGraph plan={trajectory.plan} steps={trajectory.steps} onStep={(id) => reveal(column, id)} />
      {rejected.length > 0 && (
        <details class="rejected">
          <summary>{rejected.length} rejected {rejected.length === 1 ? "plan" : "plans"}</summary>
          {rejected.map((draft) => <><ul>{draft.faults.map((fault) => <li><Text>{fault}</Text></li>)}</ul><pre tabIndex={0}>{visible(draft.text)}</pre></>)}
        </details>
      )}
    </>
  );
}

function StepOf({ step, trajectory, column }: { step: Step; trajectory: Trajectory; column: number }) {
  const planned = trajectory.plan?.find((each) => each.id === step.id);
  const cited = trajectory.notes.citations?.cited.includes(step.id);
  return (
    <article class={`step${step.failed ? " failed" : ""}`} id={`step-${column}-${step.id}`} tabIndex={-1}>
      <header>
        <span class="id">{visible(step.id)}</span>
        {step.tool && <b>{visible(step.tool)}</b>}
        {step.failed && <span class="tag bad">failed</span>}
        {cited && <span class="tag">cited</span>}
      </header>
      {step.thought && <p class="thought"><Text>{step.thought}</Text></p>}
      {planned && placeholders(planned) && <p class="argument"><Planned step={planned} column={column} /></p>}
      {step.argument && <p class="argument"><span class="muted">→ </span><Text>{step.argument}</Text></p>}
      {step.observation && <p class="observation"><Text>{step.observation}</Text></p>}
    </article>
  );
}

const placeholders = (step: PlanStep) => (step.args ?? "").match(/\{\{\w+\}\}/g);

// The argument as it was planned: each placeholder leads to the step that fills it.
function Planned({ step, column }: { step: PlanStep; column: number }) {
  return (
    <span class="text planned">
      {(step.args ?? "").split(/(\{\{\w+\}\})/).map((part) => {
        const id = /^\{\{(\w+)\}\}$/.exec(part)?.[1];
        return id ? <button type="button" class="link" onClick={() => reveal(column, id)}>#{id}</button> : visible(part);
      })}
    </span>
  );
}

function Answer({ system, trajectory, gold, line }: { system: System; trajectory: Trajectory; gold: string[]; line: number }) {
  const answer = trajectory.answer ?? system.prediction[line];
  const notes = trajectory.notes;
  const tags = [
    trajectory.replans > 0 ? `${trajectory.replans} replan${trajectory.replans > 1 ? "s" : ""}` : "",
    notes.partial_answer ? "partial answer at the step limit" : "",
    notes.fallback ? "fallback to ReAct" : "",
    notes.dropped_steps ? `${notes.dropped_steps} dropped steps` : "",
    notes.repaired?.length ? `${notes.repaired.length} repaired replies` : "",
    ...(notes.gateway ?? []),
    notes.citations?.unknown.length ? `cites unknown evidence: ${notes.citations.unknown.join(", ")}` : "",
  ].filter(Boolean);
  return (
    <div class={`answer ${system.outcome[line] === "r" ? "right" : "wrong"}`}>
      <span class="muted">answer</span>{" "}
      {answer === null || answer === undefined ? <i>{system.stop[line] === "answered" ? "not shown" : `none (${visible(system.stop[line] ?? "")})`}</i> : <b><Matched text={answer} gold={gold} /></b>}
      {system.f1[line] !== null && system.f1[line] !== undefined && <span class="muted"> F1 {number(system.f1[line], 2)}</span>}
      {tags.map((tag) => <span class="tag">{visible(tag)}</span>)}
      {(trajectory.error ?? system.error[line]) && <p class="warning"><Text>{(trajectory.error ?? system.error[line])!}</Text></p>}
      {notes.stderr && <details><summary>standard error</summary><pre tabIndex={0}>{visible(notes.stderr)}</pre></details>}
      {trajectory.prompts?.map((each) => (
        <details><summary>prompt at {visible(each.place)}</summary><pre tabIndex={0}>{visible(each.prompt.join("\n\n"))}</pre><pre tabIndex={0}>{visible(each.completion)}</pre></details>
      ))}
    </div>
  );
}
