/** The panel for importing a CSV file. A dry run first shows what the import would do. The user then starts the import. */

import { useQuery } from "@tanstack/react-query";
import type { RowFault } from "canvassing-client/api";
import { useMemo, useState } from "react";
import { importColumns } from "../../../shared/prospects/csv/format.ts";
import { DraftNote, useDrafts } from "../drafts/draft.tsx";
import type { Draft } from "../drafts/store.ts";
import { Button } from "../ui/button.tsx";
import { DataTable } from "../ui/data-table.tsx";
import { Field, Fields, Select } from "../ui/field.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { Panel } from "../ui/page.tsx";
import { amount } from "../ui/text.ts";
import { type Chosen, draftOf, KEPT_BYTES, keptIn, LIMIT, RECORD, withUnread } from "./draft.ts";
import style from "./files.module.css";
import { type ImportOptions, type ImportOutcome, MATCHES, ON_MATCH } from "./import-request.ts";
import { JOB_BYTES, useCancelImport, useImport, useUndoImport } from "./queries.ts";
import { rowTexts } from "./row-texts.ts";

const matchLabels = { id: "the id", sourceId: "the source's id", emailAddress: "the e-mail address" } as const;
const onMatchLabels = {
  update: "Update the prospect",
  skip: "Skip the row",
  create: "Create another prospect",
} as const;
const start: Omit<Chosen, "file"> = {
  options: { mapping: {}, matchBy: undefined, onMatch: "update" },
  columns: [],
};

export function ImportPanel() {
  const { store, all } = useDrafts();
  const draft = all.find(({ record }) => record === RECORD);
  const [chosen, setChosen] = useState<Chosen>();
  const { send, progress, stopUpload } = useImport();
  const cancel = useCancelImport(stopUpload);
  const jobId = progress?.jobId;
  const result = send.data;

  const keep = (now: Chosen): void => {
    setChosen(now);
    store.save(draftOf(now), LIMIT);
  };
  const check = (now: Chosen): void => {
    keep(now);
    send.mutate({ ...now, dryRun: true }, { onSuccess: (read) => keep(withUnread(now, read)) });
  };
  const choose = (file: File): void => {
    if (file.size > JOB_BYTES) {
      notifyFailed(new Error("The file is larger than 200 MB. Divide it into several files."));
      return;
    }
    const kept = draft && keptIn(draft);
    check({ ...(kept?.name === file.name ? kept : start), file });
  };
  const discard = (): void => {
    store.drop(RECORD);
    setChosen(undefined);
    send.reset();
  };

  return (
    <Panel title="Import">
      <DropZone onFile={choose} />
      {progress !== undefined && (
        <div className="stack tight">
          <p role="status">{progress.text}</p>
          <progress value={progress.share} aria-label="Progress of the import" />
          {jobId !== undefined && (
            <div>
              <Button disabled={cancel.isPending || cancel.data?.id === jobId} onClick={() => cancel.mutate(jobId)}>
                {send.variables?.dryRun === true ? "Cancel the check" : "Cancel the import"}
              </Button>
            </div>
          )}
        </div>
      )}
      {draft !== undefined && result === undefined && !send.isPending && (
        <Kept draft={draft} file={chosen?.file ?? draft.file} onCheck={check} onDiscard={discard} />
      )}
      {chosen !== undefined && result?.dryRun !== false && !send.isPending && (
        <Options
          chosen={chosen}
          change={(changes) => check({ ...chosen, options: { ...chosen.options, ...changes } })}
        />
      )}
      {chosen !== undefined && result !== undefined && !send.isPending && (
        <>
          <Summary
            file={chosen.file}
            result={result}
            onImport={() => {
              // The user may leave the page while the import runs. A draft would then invite the user to import the file again.
              store.drop(RECORD);
              send.mutate({ ...chosen, dryRun: false }, { onError: () => keep(chosen) });
            }}
            onCancel={discard}
          />
          <RowFaults file={chosen.file} result={result} />
          {result.errorReport !== undefined && (
            <p>
              <a href={result.errorReport}>Download all faults as a CSV file</a>
            </p>
          )}
        </>
      )}
    </Panel>
  );
}

interface KeptProps {
  readonly draft: Draft;
  /** Undefined if the browser has not kept the file. */
  readonly file: File | undefined;
  readonly onCheck: (chosen: Chosen) => void;
  readonly onDiscard: () => void;
}

/** Shows an import that the user has prepared but not started. */
function Kept({ draft, file, onCheck, onDiscard }: KeptProps) {
  const kept = keptIn(draft);
  return (
    <>
      <p>
        <strong>{kept.name}</strong> is not imported.
        {file === undefined &&
          ` The console keeps files of up to ${KEPT_BYTES / 1_000_000} MB. Choose this one again: its options are kept.`}
      </p>
      {file !== undefined && (
        <div>
          <Button onClick={() => onCheck({ ...kept, file })}>Check the file again</Button>
        </div>
      )}
      <DraftNote draft={{ drafts: [draft], discard: onDiscard }} />
    </>
  );
}

interface OptionsProps {
  readonly chosen: Chosen;
  readonly change: (changes: Partial<ImportOptions>) => void;
}

function Options({ chosen: { options, columns }, change }: OptionsProps) {
  const { mapping, matchBy, onMatch } = options;
  return (
    <Fields>
      <Field label="Find existing prospects by">
        <Select
          value={matchBy ?? ""}
          none="Do not: each row is a new prospect"
          options={MATCHES.map((one) => [one, matchLabels[one]])}
          onChange={({ target }) => change({ matchBy: MATCHES.find((one) => one === target.value) })}
        />
      </Field>
      {matchBy !== undefined && (
        <Field label="If one exists">
          <Select
            value={onMatch}
            options={ON_MATCH.map((one) => [one, onMatchLabels[one]])}
            onChange={({ target }) => change({ onMatch: ON_MATCH.find((one) => one === target.value) ?? "update" })}
          />
        </Field>
      )}
      {columns.map(({ header, samples }) => (
        <Field key={header} label={`The column “${header}” is`} hint={hintOf(samples, mapping[header])}>
          <Select
            value={mapping[header] ?? ""}
            none="left out"
            options={importColumns.map((one) => [one, one])}
            onChange={({ target }) => {
              const { [header]: _, ...others } = mapping;
              const column = importColumns.find((one) => one === target.value);
              change({ mapping: column === undefined ? others : { ...others, [header]: column } });
            }}
          />
        </Field>
      ))}
    </Fields>
  );
}

function hintOf(samples: readonly string[], column: string | null | undefined): string | undefined {
  if (samples.length > 0) return `For example: ${samples.join(", ")}`;
  return column == null ? "The service does not read this column." : undefined;
}

const NO_ROWS = "the file has no rows below its header";
const NO_COLUMN = "the service knows none of the columns. Choose what they are";

interface SummaryProps {
  readonly file: File;
  readonly result: ImportOutcome;
  readonly onImport: () => void;
  readonly onCancel: () => void;
}

function Summary({ file, result, onImport, onCancel }: SummaryProps) {
  const { dryRun, imported, updated, skipped, warnings, columns, id } = result;
  const undo = useUndoImport();
  const verb = (count: number) => (dryRun ? "would be" : count === 1 ? "was" : "were");
  const parts = [
    `${amount(imported, "prospect")} ${verb(imported)} created`,
    updated > 0 && `${amount(updated, "prospect")} ${verb(updated)} updated`,
    skipped > 0 && `${amount(skipped, "row")} ${verb(skipped)} skipped`,
  ].filter((part) => part !== false);
  const hasRows = imported + updated + skipped > 0;
  return (
    <div className={`${style.summary} row between`} role="status">
      <p>
        <strong>{file.name}</strong>: {hasRows ? parts.join(", ") : columns === undefined ? NO_ROWS : NO_COLUMN}.
        {hasRows && dryRun && " Nothing is written yet."}
        {warnings > 0 &&
          ` ${amount(warnings, "faulty value")} ${verb(warnings)} left empty, for example a rep who is not a user.`}
      </p>
      <div className="row">
        {dryRun && (
          <Button kind="main" disabled={imported + updated === 0} onClick={onImport}>
            Import {amount(imported + updated, "row")}
          </Button>
        )}
        {!dryRun && id !== null && imported > 0 && (
          <Button disabled={undo.isPending || undo.isSuccess} onClick={() => undo.mutate(id)}>
            Undo the import
          </Button>
        )}
        <Button onClick={onCancel}>{dryRun ? "Cancel" : "Import another file"}</Button>
      </div>
    </div>
  );
}

function DropZone({ onFile }: { onFile: (file: File) => void }) {
  const [isOver, setOver] = useState(false);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut for the file input inside
    <div
      className={`${style.drop} stack tight`}
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const [file] = event.dataTransfer.files;
        if (file !== undefined) onFile(file);
      }}
    >
      <label className="row">
        <span>Drop a CSV file here, or choose one.</span>
        <input
          type="file"
          accept=".csv,text/csv"
          onChange={({ target }) => {
            const [file] = target.files ?? [];
            if (file !== undefined) onFile(file);
            target.value = "";
          }}
        />
      </label>
      <small className="muted">
        Up to 200 MB and a million rows. The file is checked first; nothing is written until you import it.
      </small>
    </div>
  );
}

/** Maximum number of rows in the table of faults, because more rows would make the page slow. */
const SHOWN = 200;

interface FaultsProps {
  readonly file: File;
  readonly result: Pick<ImportOutcome, "errors" | "encoding" | "skipped">;
}

function RowFaults({ file, result: { errors, encoding, skipped } }: FaultsProps) {
  const shown = useMemo(() => errors.slice(0, SHOWN).map((fault) => ({ ...fault, id: fault.row })), [errors]);
  // The browser reads the faulty rows from the file on the user's disk. This may fail if the file was changed after the import. The table
  // then shows the numbers of the rows and the reasons, but not the texts of the rows.
  const { data: texts } = useQuery({
    queryKey: ["row-texts", file.name, file.lastModified, encoding, shown.map(({ row }) => row)],
    queryFn: () => rowTexts(piecesOf(file, encoding ?? "utf-8"), new Set(shown.map(({ row }) => row))),
    enabled: shown.length > 0,
    retry: false,
    gcTime: 0,
  });
  const columns = useMemo(
    () => [
      { id: "row", header: "Row", align: "right" as const, cell: ({ row }: RowFault) => row },
      { id: "message", header: "Reason", cell: ({ message }: RowFault) => message },
      {
        id: "text",
        header: "Text of the row",
        cell: ({ row }: RowFault) => <code className="typed">{texts?.get(row)}</code>,
      },
    ],
    [texts],
  );
  if (shown.length === 0) return null;
  return (
    <>
      <h3>
        {amount(skipped, "row")} with a fault
        {skipped > shown.length && `; these are the first ${shown.length}`}
      </h3>
      <DataTable label="Rows with faults" columns={columns} rows={shown} />
    </>
  );
}

async function* piecesOf(file: File, encoding: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  // A reader is used, because not all browsers support `for await` for streams.
  const reader = file.stream().getReader();
  try {
    for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    await reader.cancel();
  }
}
