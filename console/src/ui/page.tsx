/** The head and the content of a page. */
import type { ReactNode } from "react";
import style from "./page.module.css";

interface PageProps {
  readonly title: string;
  /** One sentence under the title. */
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

export function Page({ title, lead, actions, children }: PageProps) {
  return (
    <div className={`${style.page} stack`}>
      <header className="row between">
        <div>
          <h1>{title}</h1>
          {lead !== undefined && <p className="muted">{lead}</p>}
        </div>
        <div className="row">{actions}</div>
      </header>
      {children}
    </div>
  );
}

export function Panel({ title, actions, children }: { title: string; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className={`${style.panel} card stack`}>
      <header className="row between">
        <h2>{title}</h2>
        <div className="row">{actions}</div>
      </header>
      {children}
    </section>
  );
}
