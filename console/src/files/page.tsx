/** The page for importing and exporting CSV files. It also lists the jobs that changed many prospects. */
import { Download } from "../api/download.tsx";
import { mayManage, useMe } from "../api/reference.ts";
import { Page, Panel } from "../ui/page.tsx";
import { ImportPanel } from "./import-panel.tsx";
import { ImportTable, JobTable } from "./tables.tsx";

export function FilesPage() {
  const me = useMe().data;
  if (me === undefined) return null;
  return (
    <Page title="Imports and exports" lead="Prospects as CSV files.">
      <Panel
        title="Export"
        actions={
          <>
            <Download path="/api/prospects/import/template.csv" name="template.csv">
              Empty template
            </Download>
            <Download kind="main" path="/api/prospects/export" name="prospects.csv">
              Download all prospects
            </Download>
          </>
        }
      >
        <p>To export some prospects, filter them on the page Prospects and use the button Export there.</p>
      </Panel>
      {mayManage(me) && (
        <>
          <ImportPanel />
          <ImportTable />
          <JobTable />
        </>
      )}
    </Page>
  );
}
