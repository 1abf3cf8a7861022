/** The panel for importing a CSV file. A dry run first shows what the import would do. The user then starts the import. */
import { useState } from "react";
import { importColumns } from "../../../shared/prospects/csv/format.ts";
import { Button } from "../ui/button.tsx";
import { Field, Fields, Select } from "../ui/field.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { Panel } from "../ui/page.tsx";
import { amount } from "../ui/text.ts";
import { DropZone } from "./drop-zone.tsx";
import style from "./files.module.css";
import { type ImportOptions, type ImportOutcome, MATCHES, ON_MATCH } from "./import-request.ts";
import { JOB_BYTES, useCancelImport, useImport, useUndoImport } from "./queries.ts";
import { RowFaults } from "./row-faults.tsx";

const matchLabels = { id: "the id", sourceId: "the source's id", emailAddress: "the e-mail address" } as const;
const onMatchLabels = {
  update: "Update the prospect",
  skip: "Skip the row",
  create: "Create another prospect",
} as const;
const start: ImportOptions = { mapping: {}, matchBy: undefined, onMatch: "update" };

export function ImportPanel() {
  const [file, setFile] = useState<File>();
  const [options, setOptions] = useState(start);
  const { send, progress, stopUpload } = useImport();
  const cancel = useCancelImport(stopUpload);
  const jobId = progress?.jobId;
  const result = send.data;

  const choose = (chosen: File) => {
    if (chosen.size > JOB_BYTES) {
      notifyFailed(new Error("The file is larger than 200 MB. Divide it into several files."));
      return;
    }
    setFile(chosen);
    setOptions(start);
    send.mutate({ file: chosen, options: start, dryRun: true });
  };
  const change = (changes: Partial<ImportOptions>) => {
    const changed = { ...options, ...changes };
    setOptions(changed);
    if (file !== undefined) send.mutate({ file, options: changed, dryRun: true });
  };

  return (
    <Panel title="Import">
      <DropZone onFile={choose} />
      {progress !== undefined && (
        <div className={style.progress}>
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
      {file !== undefined && result !== undefined && !send.isPending && (
        <>
          {result.dryRun && <Options options={options} change={change} unknown={result.ignoredColumns} />}
          <Summary
            file={file}
            result={result}
            onImport={() => send.mutate({ file, options, dryRun: false })}
            onCancel={() => {
              setFile(undefined);
              send.reset();
            }}
          />
          <RowFaults file={file} result={result} />
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

interface OptionsProps {
  readonly options: ImportOptions;
  readonly change: (changes: Partial<ImportOptions>) => void;
  readonly unknown: readonly string[];
}

function Options({ options: { mapping, matchBy, onMatch }, change, unknown }: OptionsProps) {
  const headers = [...new Set([...Object.keys(mapping), ...unknown])];
  return (
    <Fields>
      <Field label="Find existing prospects by">
        <Select
          value={matchBy ?? ""}
          onChange={({ target }) => change({ matchBy: MATCHES.find((one) => one === target.value) })}
        >
          <option value="">Do not: each row is a new prospect</option>
          {MATCHES.map((one) => (
            <option key={one} value={one}>
              {matchLabels[one]}
            </option>
          ))}
        </Select>
      </Field>
      {matchBy !== undefined && (
        <Field label="If one exists">
          <Select
            value={onMatch}
            onChange={({ target }) => change({ onMatch: ON_MATCH.find((one) => one === target.value) ?? "update" })}
          >
            {ON_MATCH.map((one) => (
              <option key={one} value={one}>
                {onMatchLabels[one]}
              </option>
            ))}
          </Select>
        </Field>
      )}
      {headers.map((header) => (
        <Field key={header} label={`The column “${header}” is`} hint="The service does not know this name.">
          <Select
            value={mapping[header] ?? ""}
            onChange={({ target }) => {
              const { [header]: _, ...others } = mapping;
              const column = importColumns.find((one) => one === target.value);
              change({ mapping: column === undefined ? others : { ...others, [header]: column } });
            }}
          >
            <option value="">left out</option>
            {importColumns.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </Select>
        </Field>
      ))}
    </Fields>
  );
}

interface SummaryProps {
  readonly file: File;
  readonly result: ImportOutcome;
  readonly onImport: () => void;
  readonly onCancel: () => void;
}

function Summary({ file, result, onImport, onCancel }: SummaryProps) {
  const { dryRun, imported, updated, skipped, id } = result;
  const undo = useUndoImport();
  const verb = (count: number) => (dryRun ? "would be" : count === 1 ? "was" : "were");
  const parts = [
    `${amount(imported, "prospect")} ${verb(imported)} created`,
    updated > 0 && `${amount(updated, "prospect")} ${verb(updated)} updated`,
    skipped > 0 && `${amount(skipped, "row")} ${verb(skipped)} skipped`,
  ].filter((part) => part !== false);
  const hasRows = imported + updated + skipped > 0;
  return (
    <div className={style.summary} role="status">
      <p>
        <strong>{file.name}</strong>: {hasRows ? parts.join(", ") : "the file has no rows below its header"}.
        {hasRows && dryRun && " Nothing is written yet."}
      </p>
      <div className={style.buttons}>
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
