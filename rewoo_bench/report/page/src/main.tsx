import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { live, readOverview, readTable, watch, type Overview, type Table } from "./data";
import { Details, Verdict } from "./overview";
import { QuestionView } from "./question";
import { Questions } from "./questions";
import { go, parse, useLocation } from "./state";
import { lines, nameOf, shown } from "./table";

function App({ head, table }: { head: Overview; table: Table }) {
  const state = useLocation();
  const systems = useMemo(() => shown(table, state), [table, state.a.join("\n")]);
  const chosen = useMemo(() => lines(table, systems, state), [table, systems, state.show, state.type, state.stop, state.find, state.sort]);
  const byName = useMemo(() => new Map(table.ids.map((_, i) => [nameOf(table, i), i])), [table]);
  const open = state.q ? byName.get(state.q) : undefined;
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Escape") {
        if (typing) (event.target as HTMLElement).blur();
        else if (parse(location.hash).q) go({ q: "" });
        else go({ show: "", type: "", stop: "", find: "" });
      } else if (typing) return;
      else if (event.key === "/") {
        event.preventDefault();
        if (open !== undefined) go({ q: "" });
        requestAnimationFrame(() => document.getElementById("search")?.focus());
      } else if (event.key === "j" || event.key === "k") {
        const at = open === undefined ? -1 : chosen.indexOf(open);
        const next = chosen[event.key === "j" ? at + 1 : at - 1];
        if (next !== undefined) go({ q: nameOf(table, next) }, open !== undefined);
      }
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, [chosen, open, table]);
  if (open !== undefined) return <QuestionView key={state.q} table={table} systems={systems} state={state} line={open} chosen={chosen} head={head} />;
  return (
    <main>
      <Verdict head={head} />
      {state.q && <p class="warning" role="alert">There is no question {JSON.stringify(state.q)} on this page.</p>}
      <Questions table={table} systems={systems} state={state} chosen={chosen} />
      <Details head={head} table={table} />
    </main>
  );
}

interface Data { head: Overview; table: Table }

function Page() {
  const [data, setData] = useState<Data | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const read = async () => {
      try {
        const [head, table] = await Promise.all([readOverview(), readTable()]);
        setData({ head, table });
        setProblem("");
        document.title = head.title;
        document.body.dataset.page = "ready";
      } catch (error) {
        setProblem(String(error instanceof Error ? error.message : error));
      }
    };
    void read();
    watch(() => void read());
  }, []);
  return (
    <>
      {problem && <p class="warning" role="alert">{live ? problem : `The questions can't be read: ${problem}. A browser from 2024 or newer is needed.`}</p>}
      {data && <App head={data.head} table={data.table} />}
    </>
  );
}

render(<Page />, document.getElementById("app")!);
