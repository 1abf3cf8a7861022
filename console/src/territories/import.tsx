/** Creates territories from a GeoJSON file, and lists the features of the file from which no territory was created. */

import type { TerritoryImport } from "canvassing-client/api";
import { useRef, useState } from "react";
import { useChange } from "../api/change.ts";
import { answer, api } from "../api/client.ts";
import { sentence } from "../api/faults.ts";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Modal } from "../ui/modal.tsx";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { amount, numberText } from "../ui/text.ts";

export function ImportButton() {
  const input = useRef<HTMLInputElement>(null);
  const [imported, setImported] = useState<Imported>();
  const send = useChange({
    run: async (file: File): Promise<Imported> => {
      const collection = collectionIn(await file.text());
      const body = { type: "FeatureCollection" as const, ...collection };
      return { ...collection, result: await answer(api.POST("/api/territories/import", { body })) };
    },
    stale: ["territories"],
    onDone: (done) => {
      const { created, results } = done.result;
      if (created === results.length) notifyDone(`${amount(created, "feature")} imported.`);
      else setImported(done);
    },
    onError: notifyFailed,
  });
  return (
    <>
      <Button kind="quiet" disabled={send.isPending} onClick={() => input.current?.click()}>
        Import GeoJSON
      </Button>
      <input
        ref={input}
        type="file"
        accept=".json,.geojson,application/geo+json"
        aria-label="GeoJSON file"
        hidden
        onChange={({ target }) => {
          const [file] = target.files ?? [];
          if (file !== undefined) send.mutate(file);
          target.value = "";
        }}
      />
      {imported !== undefined && <ImportResult imported={imported} onClose={() => setImported(undefined)} />}
    </>
  );
}

/**
 * Returns the members of the GeoJSON file that the service reads. `crs` is one of them, because the service refuses a file whose coordinate
 * reference system is not WGS 84.
 */
function collectionIn(text: string): { features: unknown[]; crs?: unknown } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && "features" in value && Array.isArray(value.features)) {
      return { features: value.features, ...("crs" in value && { crs: value.crs }) };
    }
  } catch {
    // A file that is not JSON leads to the same error message as JSON of another format.
  }
  throw new Error("This file is not a GeoJSON FeatureCollection.");
}

interface Imported {
  readonly result: TerritoryImport;
  /** The features of the file. They are in the same order as the results. */
  readonly features: readonly unknown[];
}

interface Row {
  /** The place of the feature in the file, from 1. */
  readonly id: number;
  readonly name: string;
  readonly outcome: string;
  readonly reason: string;
}

const columns: readonly Column<Row>[] = [
  { id: "place", header: "Feature", align: "right", cell: ({ id }) => numberText(id) },
  { id: "name", header: "Name", cell: ({ name }) => name },
  { id: "reason", header: "Reason", cell: ({ outcome, reason }) => `${outcome}: ${reason}` },
];

function ImportResult({ imported, onClose }: { imported: Imported; onClose: () => void }) {
  const { created, skipped, failed } = imported.result;
  return (
    <Modal title="Import of territories" onClose={onClose}>
      <div className="stack inside">
        <p>
          {amount(created, "feature")} imported, {numberText(skipped)} skipped, {numberText(failed)} failed.
        </p>
        <DataTable label="Features without a new territory" columns={columns} rows={rowsOf(imported)} />
      </div>
    </Modal>
  );
}

const rowsOf = ({ result, features }: Imported): Row[] =>
  result.results.flatMap(({ index, outcome, detail }) =>
    outcome === "created"
      ? []
      : [{ id: index + 1, name: nameIn(features[index]), outcome, reason: reasonOf(detail ?? "") }],
  );

/** Rewrites a reason such as `geometry/coordinates/0: must have at least 3 points`, whose path is for developers. */
function reasonOf(detail: string): string {
  const [, path, fault] = /^([\w/]+): (.*)$/s.exec(detail) ?? [];
  return path === undefined || fault === undefined ? detail : `${path.split("/")[0]} ${sentence(fault)}`;
}

/** Returns the name that the service would give to the territory. The feature comes from a file, so it may be any JSON value. */
function nameIn(feature: unknown): string {
  const properties = memberOf(feature, "properties");
  const names = ["name", "Name", "NAME", "title"].map((key) => memberOf(properties, key));
  return String(
    names.find((name) => typeof name === "number" || (typeof name === "string" && name.trim() !== "")) ?? "",
  );
}

const memberOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Object.entries(value).find(([key]) => key === name)?.[1] : undefined;
