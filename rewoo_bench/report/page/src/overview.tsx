import type { Overview } from "./data";
import { go } from "./state";
import { Text, visible } from "./text";

export function Head({ head, narrow }: { head: Overview; narrow: boolean }) {
  return (
    <section aria-labelledby="title" class={narrow ? "head narrow" : "head"}>
      <h1 id="title">{visible(head.title)}</h1>
      <dl class="facts">
        {head.facts.map(([name, value]) => (
          <div><dt>{name}</dt><dd><Text>{value}</Text></dd></div>
        ))}
      </dl>
      {head.notes.map((note) => <p class="warning" role="note">{visible(note)}</p>)}
      {head.table && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Means per question">
          <table class="means">
            <caption>Means per question, with 95% intervals</caption>
            <thead><tr>{head.table.head.map((cell) => <th scope="col">{cell}</th>)}</tr></thead>
            <tbody>
              {head.table.rows.map((row) => (
                <tr>{row.map((cell, i) => (i ? <td>{visible(cell)}</td> : <th scope="row">{visible(cell)}</th>))}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {head.sentences.some((s) => s.text) && (
        <ul class="sentences">
          {head.sentences.filter((s) => s.text).map((s) => (
            <li>
              {visible(s.text)}{" "}
              <button type="button" class="link" onClick={() => go({ a: [s.a, s.b], q: "" })}>
                Show the questions of {visible(s.a)} and {visible(s.b)}
              </button>
            </li>
          ))}
        </ul>
      )}
      {head.threats.length > 0 && (
        <details open class="threats">
          <summary>What to doubt</summary>
          <ul>{head.threats.map((threat) => <li>{visible(threat)}</li>)}</ul>
        </details>
      )}
      {head.figures.length > 0 && (
        <details open>
          <summary>Figures ({head.figures.length})</summary>
          <div class="figures">
            {head.figures.map((figure) => (
              <figure><img src={figure.src} alt={visible(figure.alt)} /></figure>
            ))}
          </div>
        </details>
      )}
      {head.claims.length > 0 && <Claims head={head} />}
      <details>
        <summary>Manifest</summary>
        {head.manifests.map((manifest) => (
          <pre tabIndex={0} role="region" aria-label="run.json">{visible(JSON.stringify(manifest, null, 1))}</pre>
        ))}
      </details>
    </section>
  );
}

function Claims({ head }: { head: Overview }) {
  return (
    <details>
      <summary>Published claims that this run tests ({head.claims.length})</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="Claims">
        <table>
          <thead><tr><th scope="col">claim</th><th scope="col">verdict</th><th scope="col">why</th></tr></thead>
          <tbody>
            {head.claims.map((claim) => (
              <tr>
                <td><span class="text">{visible(claim.says)}</span><br /><small>{visible(claim.source)}</small></td>
                <td class={`verdict ${claim.verdict.replaceAll(" ", "-")}`}>{claim.verdict}</td>
                <td class="text">{visible(claim.why)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
