// The table of questions: only the lines in sight are in the document.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { System, Table } from "./data";
import { Copy } from "./copy";
import { go, type State } from "./state";
import { filters, nameOf, parting, values } from "./table";
import { Term } from "./terms";
import { number, OUTCOMES, Outcome, seconds, visible } from "./text";
import { NARROW, useWidth } from "./width";

const ROW = 34; // pixels, as in the style sheet
const PER_LINE = 3; // systems, where it is narrow
const SPARE = 8; // lines above and below those in sight

export function Questions({ table, systems, state, chosen }: { table: Table; systems: System[]; state: State; chosen: number[] }) {
  const unit = table.trials.some((trial) => trial > 0) ? "trials" : "questions"; // what a line is
  return (
    <section aria-labelledby="questions">
      <h2 id="questions" tabIndex={-1}>Questions</h2>
      <Controls table={table} systems={systems} state={state} />
      <p class="count" role="status">{number(chosen.length)} of {number(table.ids.length)} {unit}</p>
      <Lines table={table} systems={systems} state={state} chosen={chosen} />
      <div class="below">
        <Legend timed={systems.some(isTimed)} />
        <Copy of="Questions" table={() => cellsOf(table, systems, chosen)} />
      </div>
    </section>
  );
}

const isTimed = (system: System) => system.latency.some((value) => value !== null);

// The lines that the list has, with a column for each number of each system.
function cellsOf(table: Table, systems: System[], chosen: number[]) {
  const columns: [string, (line: number) => string][] = systems.flatMap((system): [string, (line: number) => string][] => [
    [system.label, (line) => OUTCOMES[system.outcome[line] ?? "-"]!.word],
    [`${system.label} tokens`, (line) => number(system.tokens[line])],
    [`${system.label} calls`, (line) => number(system.calls[line])],
    ...(isTimed(system) ? [[`${system.label} s`, (line: number) => seconds(system.latency[line])] as [string, (line: number) => string]] : []),
  ]);
  return {
    head: ["question", "type", ...columns.map(([name]) => name)],
    rows: chosen.map((line) => [table.questions[line] || nameOf(table, line), table.types[line] ?? "", ...columns.map(([, of]) => of(line))]),
  };
}

function Controls({ table, systems, state }: { table: Table; systems: System[]; state: State }) {
  const all = useMemo(() => filters(table, systems), [table, systems]);
  const types = useMemo(() => values(table, "types"), [table]);
  const stops = useMemo(() => values(table, "stop"), [table]);
  const parts = useMemo(() => parting(table, systems), [table, systems]);
  return (
    <div class="controls">
      <label class="search">
        <span class="sr">Search in questions, answers and predictions</span>
        <input id="search" type="search" placeholder="Search ( / )" value={state.find}
          onInput={(event) => go({ find: event.currentTarget.value }, true)} />
      </label>
      <div role="group" aria-label="Filter by outcome" class="filters">
        {all.map((filter) => (
          <button type="button" aria-pressed={state.show === filter.value} data-show={filter.value} onClick={() => go({ show: filter.value })}>
            {visible(filter.label)} <b>{number(filter.count)}</b>
          </button>
        ))}
      </div>
      {types.length > 1 && <Choice name="type" label="Type" value={state.type} values={types} />}
      {stops.length > 1 && <Choice name="stop" label="Stop reason" value={state.stop} values={stops} />}
      {parts.length > 1 && <Choice name="part" label="Part at look-up" value={state.part} values={parts} />}
      {table.systems.length > 1 && (
        <div role="group" aria-label="Systems shown" class="systems">
          {table.systems.map((system) => {
            const on = systems.includes(system);
            const others = systems.filter((each) => each !== system).map((each) => each.label);
            return (
              <button type="button" aria-pressed={on} onClick={() => go({ a: on ? others : [...others, system.label] })}>
                {visible(system.label)}
              </button>
            );
          })}
        </div>
      )}
    </div>
  );
}

function Choice({ name, label, value, values: options }: { name: "type" | "stop" | "part"; label: string; value: string; values: string[] }) {
  return (
    <label>
      {label}{" "}
      <select value={value} onChange={(event) => go({ [name]: event.currentTarget.value })}>
        <option value="">all</option>
        {options.map((each) => <option value={each}>{visible(each)}</option>)}
      </select>
    </label>
  );
}

function Lines({ table, systems, state, chosen }: { table: Table; systems: System[]; state: State; chosen: number[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [focus, setFocus] = useState(0);
  const [printing, setPrinting] = useState(false);
  const narrow = useWidth() < NARROW;
  const row = narrow ? narrowRow(systems) : ROW;
  const typed = useMemo(() => new Set(table.types).size > 1, [table]);
  useEffect(() => {
    const element = box.current!;
    const read = () => setView({ top: element.scrollTop, height: element.clientHeight });
    read();
    const before = () => setPrinting(true), after = () => setPrinting(false);
    element.addEventListener("scroll", read, { passive: true });
    window.addEventListener("resize", read);
    window.addEventListener("beforeprint", before);
    window.addEventListener("afterprint", after);
    return () => {
      window.removeEventListener("resize", read);
      window.removeEventListener("beforeprint", before);
      window.removeEventListener("afterprint", after);
    };
  }, []);
  useEffect(() => { box.current!.scrollTop = 0; setFocus(0); }, [state.show, state.type, state.stop, state.part, state.find, state.sort]);
  const from = printing ? 0 : Math.max(0, Math.floor(view.top / row) - SPARE);
  const to = printing ? Math.min(chosen.length, 500) : Math.min(chosen.length, Math.ceil((view.top + view.height) / row) + SPARE);
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === "Enter" && chosen[focus] !== undefined) { go({ q: nameOf(table, chosen[focus]!) }); event.preventDefault(); }
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(chosen.length - 1, focus + step));
    setFocus(next);
    const element = box.current!;
    if (next * row < element.scrollTop) element.scrollTop = next * row;
    if ((next + 2) * row > element.scrollTop + element.clientHeight) element.scrollTop = (next + 2) * row - element.clientHeight;
  };
  const ids = systems.map((system) => table.systems.indexOf(system));
  return (
    <div class="lines" ref={box} tabIndex={0} role="grid" aria-label="Questions" aria-rowcount={chosen.length + 1}
      aria-activedescendant={chosen.length ? `line-${chosen[focus]}` : undefined} onKeyDown={move}>
      <div class="line header" role="row" aria-rowindex={1} style={grid(systems, typed, narrow)}>
        <Column sort="question" state={state}>question</Column>
        {typed && <Column sort="type" state={state}>type</Column>}
        {systems.map((system, i) => (
          <div class="cell group" role="columnheader">
            <span class="label" title={visible(system.label)}>{visible(system.label)}</span>
            <span class="sorts">
              <Sort by={`outcome:${ids[i]}`} state={state} name={`outcome of ${system.label}`}>✓</Sort>
              <Sort by={`tokens:${ids[i]}`} state={state} name={`tokens of ${system.label}`}>tokens</Sort>
              <Sort by={`calls:${ids[i]}`} state={state} name={`calls of ${system.label}`}>calls</Sort>
              {isTimed(system) && <Sort by={`latency:${ids[i]}`} state={state} name={`seconds of ${system.label}`}>s</Sort>}
            </span>
          </div>
        ))}
      </div>
      <div class="above" role="presentation" style={{ height: `${from * row}px` }} />
      {chosen.slice(from, to).map((line, i) => (
        <div id={`line-${line}`} class={`line${from + i === focus ? " focused" : ""}`} role="row" aria-rowindex={from + i + 2} key={line}
          style={grid(systems, typed, narrow)} onClick={() => go({ q: nameOf(table, line) })}>
          <div class="cell question" role="gridcell">
            <a href={`#q=${encodeURIComponent(nameOf(table, line))}`} tabIndex={-1} onClick={(event) => event.preventDefault()}>
              {visible(table.questions[line] || nameOf(table, line))}
            </a>
            {systems.some((system) => system.flags[line]?.length) && <span class="outcome failed" title="a row is flagged"> ⚑<span class="sr">flagged</span></span>}
          </div>
          {typed && <div class="cell type" role="gridcell">{visible(table.types[line] ?? "")}</div>}
          {systems.map((system) => (
            <div class="cell numbers" role="gridcell">
              <Outcome code={system.outcome[line] ?? "-"} stop={system.stop[line]} />
              <span class="label">{visible(system.label)}</span>
              <span>{number(system.tokens[line])}</span>
              <span>{number(system.calls[line])}</span>
              {isTimed(system) && <span>{seconds(system.latency[line])}</span>}
            </div>
          ))}
        </div>
      ))}
      <div role="presentation" style={{ height: `${Math.max(0, chosen.length - to) * row}px` }} />
      {!chosen.length && <p class="none">No question fits. <button type="button" class="link" onClick={() => go({ show: "", type: "", stop: "", part: "", find: "" })}>Clear the filters</button></p>}
    </div>
  );
}

const narrowRow = (systems: System[]) => 36 + 22 * Math.ceil(systems.length / PER_LINE);

const grid = (systems: System[], typed: boolean, narrow: boolean) => narrow
  ? { gridTemplateColumns: `repeat(${Math.min(systems.length, PER_LINE)}, minmax(0, 1fr))`, height: `${narrowRow(systems)}px` }
  : {
    gridTemplateColumns: `minmax(12rem, 1fr) ${typed ? "6.3rem " : ""}repeat(${systems.length}, 11rem)`,
    minWidth: `${12 + (typed ? 6.3 : 0) + 11 * systems.length}rem`,
  };

function Column({ sort, state, children }: { sort: string; state: State; children: string }) {
  return <div class="cell" role="columnheader"><Sort by={sort} state={state} name={children}>{children}</Sort></div>;
}

function Sort({ by, state, name, children }: { by: string; state: State; name: string; children: string }) {
  const on = state.sort === by ? "▲" : state.sort === `-${by}` ? "▼" : "";
  const next = state.sort === by ? `-${by}` : state.sort === `-${by}` ? "" : by;
  return (
    <button type="button" class="sort" aria-label={`Sort by ${visible(name)}${on ? (on === "▲" ? ", now ascending" : ", now descending") : ""}`} onClick={() => go({ sort: next })}>
      {children}{on}
    </button>
  );
}

function Legend({ timed }: { timed: boolean }) {
  return (
    <p class="legend">
      {Object.entries(OUTCOMES).map(([code, { word }]) => <span><Outcome code={code} /> {word}</span>)}
      <span><Term says="Model calls of the question.">calls</Term>{timed && <> · <Term says="Seconds of the question, without waiting for a start.">s</Term></>}</span>
      <span><kbd>/</kbd> search</span><span><kbd>j</kbd> <kbd>k</kbd> next, previous question</span><span><kbd>Esc</kbd> back</span>
    </p>
  );
}
